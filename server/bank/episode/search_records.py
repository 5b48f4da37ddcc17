"""Where a repair's search is written down, and taken up again: the record's side of the bank."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace

from pydantic import JsonValue

from catalog.canonical import digest
from server.bank.context import Context
from server.evolution.errors import RecordMismatch
from server.evolution.evaluate import Evaluator
from server.evolution.journal import Journal
from server.evolution.lines import SearchLine
from server.evolution.options import SearchOptions
from server.evolution.record import create_record, resume_record
from server.requests import RepairRequest
from skills_store.workflow.hashing import content_hash
from skills_store.workflow.model import Workflow

__all__ = ["open_record"]


@contextmanager
def open_record(
    workflow: Workflow, request: RepairRequest, evaluator: Evaluator, context: Context
) -> Generator[tuple[Journal | None, SearchOptions]]:
    """Open the record a request asks for, with the options it goes on under; no record: None.

    Going on, what was evaluated is not evaluated again, and no call that ran, or may have, is made again.

    Raises:
        RecordError: it cannot be written, read, or gone on with; nothing was run.
    """
    options = request.search
    if request.resume is None and request.record is None:
        yield None, options
        return
    head = _head(workflow, request, context)
    if request.resume is None:
        assert request.record is not None
        file = create_record(request.record, head, context.recorder)
    else:
        if request.record not in (None, request.resume):
            raise RecordMismatch("a search that is taken up goes on in its own record: give --resume alone")
        file, kept = resume_record(request.resume, head, context.recorder)
        options = replace(options, seed=kept.head.seed)
        evaluator.recorded = kept.evaluations
        evaluator.episode.restore(kept.ran)
    evaluator.episode.keep_book(file)
    try:
        yield file, options
    finally:
        file.close()


def _head(workflow: Workflow, request: RepairRequest, context: Context) -> SearchLine:
    redact = context.recorder.redact
    document = redact(workflow.to_json())
    checks: JsonValue = [[*request.checks.assertions], request.checks.schema]
    return SearchLine(
        base=content_hash(workflow),
        workflow=document if isinstance(document, dict) else {},
        task=None if request.task is None else str(redact(request.task)),
        inputs=digest(dict(request.inputs)),
        checks=digest(checks),
        strategy=request.search.strategy,
        seed=request.search.seed,
        started_at=context.clock(),
    )
