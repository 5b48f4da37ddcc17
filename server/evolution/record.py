"""The record of a search in a file of JSON lines: written as it goes, and gone on from.

Each line is complete when the next is begun, so that a process that is killed loses at most the
candidate in flight; a call that is not free is on record before it is sent, so that going on never
sends it again. A torn last line is cut off; any other broken line is an error.

Paper: EvoFlux (history as JSON lines; facts §1.8). Differs: infeasible candidates and orders that came
to nothing are on record too (facts §5.2 item 15), and so is what ran and cannot be undone.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from pydantic import BaseModel, ValidationError

from catalog.canonical import digest
from catalog.result import CallOutcome
from server.evolution.building import build_candidate, edited
from server.evolution.candidate import Candidate, Evaluation, Made, Record
from server.evolution.errors import RecordExists, RecordMismatch, RecordUnreadable
from server.evolution.lines import (
    VERSION,
    CallLine,
    CandidateLine,
    FruitlessLine,
    Line,
    SearchLine,
    candidate_line,
    evaluation_of,
    line_adapter,
    made_from,
    made_of,
    outcome_of,
    outcome_value,
)
from server.evolution.offspring import Child
from server.evolution.proposal import Proposal
from server.evolution.strategy import Order
from server.execution.calls import CallRequest
from server.execution.ledger import Restored
from server.execution.recording import Recorder
from skills_store.workflow.edits import EditRefused
from skills_store.workflow.hashing import content_hash
from skills_store.workflow.model import parse_workflow

__all__ = ["KeptSearch", "SearchFile", "create_record", "read_search", "resume_record"]


@dataclass(frozen=True)
class KeptSearch:
    """A whole record as it was read."""

    head: SearchLine
    candidates: tuple[CandidateLine, ...] = ()
    fruitless: tuple[FruitlessLine, ...] = ()
    calls: tuple[CallLine, ...] = ()
    size: int = 0
    """Bytes of the complete lines; what follows is torn."""

    @property
    def evaluations(self) -> dict[str, Evaluation]:
        """What became of each candidate, by id."""
        return {line.id: evaluation_of(line) for line in self.candidates}

    @property
    def records(self) -> list[Record]:
        """Every candidate with its workflow made again; one that secrets were taken out of is left out."""
        base, found = parse_workflow(self.head.workflow), list[Record]()
        for line in self.candidates:
            try:
                workflow = edited(base, line.edits)
            except EditRefused:
                continue
            candidate = Candidate(
                id=line.id,
                workflow=workflow,
                edits=line.edits,
                last=line.edits[len(line.edits) - line.new :],
                parent=line.parent,
                cost=line.cost,
                depth=len(line.edits),
            )
            if content_hash(workflow) == line.id:
                found.append(Record(candidate, evaluation_of(line), made_from(line)))
        return found

    @property
    def ran(self) -> list[Restored]:
        """The calls that happened, or may have, and must not be made again."""
        latest: dict[tuple[str, str, str, tuple[int, ...]], CallLine] = {}
        for line in self.calls:
            latest[line.node, str(line.tool), line.arguments, line.items] = line
        return [
            Restored(line.node, line.tool, line.arguments, line.items, outcome_of(line.outcome))
            for line in latest.values()
            if line.outcome is None or line.outcome.get("ran") != "no"
        ]


def read_search(path: Path) -> KeptSearch:
    """Return a record, its torn last line left out.

    Raises:
        RecordUnreadable: there is no such file, or it is no record.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise RecordUnreadable(f"{path} cannot be read: {error.strerror or error}") from error
    whole, newline, _ = content.rpartition(b"\n")
    texts = whole.split(b"\n") if newline else []
    lines = [_line(path, number, text) for number, text in enumerate(texts, 1)]
    if not lines or not isinstance(head := lines[0], SearchLine):
        raise RecordUnreadable(f"{path} is no record of a search: its first line does not say what of")
    if head.version > VERSION:
        raise RecordUnreadable(f"{path} is of a newer version ({head.version}; this program reads {VERSION})")
    return KeptSearch(
        head,
        tuple(line for line in lines if isinstance(line, CandidateLine)),
        tuple(line for line in lines if isinstance(line, FruitlessLine)),
        tuple(line for line in lines if isinstance(line, CallLine)),
        len(whole) + len(newline),
    )


def _line(path: Path, number: int, text: bytes) -> Line:
    try:
        return line_adapter.validate_json(text)
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        raise RecordUnreadable(
            f"{path}, line {number}: {problem['msg']}; take the record from before that line, or begin anew"
        ) from error


def create_record(path: Path, head: SearchLine, recorder: Recorder) -> SearchFile:
    """Return a new record.

    Raises:
        RecordExists: there is a file of that name.
        RecordUnreadable: it cannot be written.
    """
    try:
        file = path.open("xb")
    except FileExistsError as error:
        raise RecordExists(
            f"{path} is there already: go on with it by --resume, or give another name"
        ) from error
    except OSError as error:
        raise RecordUnreadable(f"{path} cannot be written: {error.strerror or error}") from error
    kept = SearchFile(file, recorder)
    kept.append(head)
    return kept


def resume_record(path: Path, head: SearchLine, recorder: Recorder) -> tuple[SearchFile, KeptSearch]:
    """Return a record to go on writing, with all that is in it.

    Args:
        path: of the file.
        head: what is searched for now; a seed of 0 takes the record's.
        recorder: replaces secrets.

    Raises:
        RecordMismatch: the record is of something else.
        RecordUnreadable: it cannot be read or written.
    """
    kept = read_search(path)
    _refuse_other(path, kept.head, head)
    try:
        file = path.open("r+b")
        file.truncate(kept.size)
        file.seek(0, os.SEEK_END)
    except OSError as error:
        raise RecordUnreadable(f"{path} cannot be written: {error.strerror or error}") from error
    return SearchFile(file, recorder, kept), kept


def _refuse_other(path: Path, recorded: SearchLine, wanted: SearchLine) -> None:
    parts = {
        "another workflow": recorded.base == wanted.base,
        "other inputs": recorded.inputs == wanted.inputs,
        "other checks": recorded.checks == wanted.checks,
        "another task": recorded.task == wanted.task,
        f"seed {recorded.seed}": wanted.seed in (0, recorded.seed),
    }
    if differing := [name for name, same in parts.items() if not same]:
        raise RecordMismatch(
            f"{path} is the record of a search with {' and '.join(differing)}:"
            " give what it was made with, or begin a new record with --record"
        )


@dataclass
class SearchFile:
    """A `Journal` in a file, and the book of calls that are not free. Close it after the search."""

    file: IO[bytes]
    recorder: Recorder
    kept: KeptSearch | None = None
    """What was in it before; None: it is new."""
    _written: set[tuple[str, int, str]] = field(default_factory=set[tuple[str, int, str]])
    _known: Mapping[tuple[str, int], CandidateLine | FruitlessLine] = field(
        default_factory=dict[tuple[str, int], CandidateLine | FruitlessLine]
    )

    def __post_init__(self) -> None:
        lines = (*self.kept.candidates, *self.kept.fruitless) if self.kept else ()
        self._known = {(line.strategy, line.number): line for line in lines if line.mode != "tidy"}
        self._written = {_key(line) for line in lines}

    def append(self, line: BaseModel, *, synced: bool = False) -> None:
        """Write one line; it is with the system when this returns, on the disk where `synced`."""
        self.file.write(line.model_dump_json().encode() + b"\n")
        self.file.flush()
        if synced:
            os.fsync(self.file.fileno())

    def close(self) -> None:
        """Close the file."""
        self.file.close()

    def write(self, record: Record) -> bool:
        """Keep one candidate; return whether it was there already."""
        made = record.made
        if (made.strategy, made.number, record.candidate.id) in self._written:
            return True
        self.append(candidate_line(record, self.recorder))
        return False

    def fruitless(self, made: Made, parent: Record | None, problems: Sequence[str]) -> None:
        """Keep an order that no candidate came of."""
        if (made.strategy, made.number, "") in self._written:
            return
        said = tuple(str(self.recorder.redact(problem)) for problem in problems)
        line = made_of(made, parent.candidate.id if parent else None)
        self.append(line.model_copy(update={"problems": said}))

    def child(self, strategy: str, order: Order) -> Child | None:
        """Return what came of the same order before: of the same parent, in the same mode."""
        line = self._known.get((strategy, order.number))
        parent = order.parent
        if line is None or parent is None or (line.parent, line.mode) != (parent.candidate.id, order.mode):
            return None
        if isinstance(line, FruitlessLine):
            return Child(None, line.by, line.tokens, line.problems, replayed=True)
        edits = line.edits[len(line.edits) - line.new :]
        try:
            candidate = build_candidate(parent.candidate, Proposal(edits, line.cost - parent.candidate.cost))
        except EditRefused:
            return None
        return Child(candidate, line.by, line.tokens, replayed=True) if candidate.id == line.id else None

    def ended(self, strategy: str) -> int | None:
        """Return after how many records another strategy took over, if one did."""
        lines = self.kept.candidates if self.kept else ()
        if not any(line.strategy not in (strategy, "tidy") for line in lines):
            return None
        return sum(line.strategy == strategy for line in lines)

    def begun(self, request: CallRequest) -> None:
        """Keep that a call that is not free is about to be sent."""
        self.append(_call_line(request), synced=True)

    def ended_call(self, request: CallRequest, outcome: CallOutcome) -> None:
        """Keep what came of it."""
        value = outcome_value(outcome, self.recorder)
        self.append(_call_line(request).model_copy(update={"outcome": value}), synced=True)


def _key(line: CandidateLine | FruitlessLine) -> tuple[str, int, str]:
    return line.strategy, line.number, line.id if isinstance(line, CandidateLine) else ""


def _call_line(request: CallRequest) -> CallLine:
    return CallLine(
        node=request.node, tool=request.tool, arguments=digest(request.arguments), items=request.items
    )
