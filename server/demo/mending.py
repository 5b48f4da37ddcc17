"""One story on an open bank: check the broken workflow, repair it, verify, compile, admit."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter

from server.bank import Bank
from server.demo.report import StoryReport
from server.demo.stories import Story
from server.progress import ProgressListener
from server.reports import CandidateRecord, RepairReport
from server.requests import Budget, RepairRequest
from server.verification import Checks
from skills_store.workflow.faults import DisguisedError, Fault, ToolError
from skills_store.workflow.hashing import content_hash
from skills_store.workflow.model import parse_workflow

__all__ = ["mend_story", "said_by_servers"]

_BUDGET = Budget(seconds=60.0, calls=200)


async def mend_story(
    story: Story, faults: Sequence[Fault], bank: Bank, progress: ProgressListener
) -> StoryReport:
    """Repair a story's workflow and make a skill of it.

    Args:
        story: what is told.
        faults: what checking its broken workflow found.
        bank: open on the demo's servers.
        progress: told what is going on.
    """
    started = perf_counter()
    request = RepairRequest(
        task=story.task,
        inputs=story.inputs,
        checks=Checks(story.assertions),
        budget=_BUDGET,
        save=story.name,
        examples=story.examples,
    )
    report = await bank.repair(story.broken, request, progress=progress)
    return StoryReport(
        **story.model_dump(exclude={"examples", "call", "mistakes"}),
        mistakes=story.mistakes,
        faults=tuple(faults),
        said=said_by_servers(report),
        edits=report.edits,
        diff=report.diff,
        workflow=report.workflow,
        status=report.status,
        left=report.faults,
        outputs=report.outputs,
        calls=report.calls,
        candidates=report.candidates,
        seconds=perf_counter() - started,
        verdict=report.verdict,
        skill=report.skill,
        skill_state=report.skill_state,
        skill_reason=report.skill_reason,
    )


def said_by_servers(report: RepairReport) -> tuple[Fault, ...]:
    """Return the failures that servers answered along the line that led to the best workflow, once each."""
    said = [fault for record in _line(report) for fault in record.faults]
    answered = [fault for fault in said if isinstance(fault, ToolError | DisguisedError)]
    return tuple({(fault.node, fault.message): fault for fault in answered}.values())


def _line(report: RepairReport) -> list[CandidateRecord]:
    """Return the candidates from the original to the best one, as far as the report has them."""
    records = {record.id: record for record in report.lineage}
    line: list[CandidateRecord] = []
    place: str | None = content_hash(parse_workflow(report.workflow))
    while place is not None and (record := records.pop(place, None)) is not None:
        line.insert(0, record)
        place = record.parent
    return line
