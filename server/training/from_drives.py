"""Episodes from drives: the report that `solve --driver react --json` prints, snapshots merged into samples.

What a model said is kept as it said it, and what it was shown as it was shown, spans of experience included.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from pydantic import JsonValue, ValidationError

from catalog.canonical import digest
from server.attribution.labels import Label
from server.context.messages import Span, Spoken
from server.context.snapshots import Sample, Snapshot, merge_snapshots
from server.reports import DriveReport, RepairReport, SnapshotRecord
from server.training.episode import Episode, EpisodeStep, ExperienceSpan, Outcome, Provenance, Turn
from server.training.errors import SourceUnreadable
from server.training.grouping import family_of, group_of
from server.training.tools import function_of

__all__ = ["episodes_of_drive", "read_drive", "run_of"]

_TASK = re.compile(r"Task: (?P<task>.*?)(?=\nInputs: |\nFinish with the outputs |\Z)", re.DOTALL)
_RESULT = re.compile(r"(?m)^(r\d+): ")
_ERROR = re.compile(r"(?m)^error: (.*)$")


@dataclass(frozen=True, slots=True)
class _Judged:
    label: Label
    reason: str
    node: str


def read_drive(path: Path) -> RepairReport:
    """Return the report of a drive.

    Raises:
        SourceUnreadable: it is none.
    """
    try:
        report = RepairReport.model_validate_json(path.read_bytes())
    except OSError as error:
        raise SourceUnreadable(f"{path} cannot be read: {error.strerror or error}") from error
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        place = "/".join(str(part) for part in problem["loc"]) or "its top"
        raise SourceUnreadable(
            f"{path} is no report of a drive ({place}: {problem['msg']}):"
            " give what `skillbank solve TASK --driver react --json` printed"
        ) from error
    if report.drive is None or not report.drive.snapshots:
        raise SourceUnreadable(f"{path} is a report without a drive: solve with --driver react")
    return report


def run_of(shots: Sequence[SnapshotRecord]) -> str:
    """Return what names a drive: the digest of all that its model was shown and said."""
    return digest([[one.model_dump(mode="json")] for one in shots])


def episodes_of_drive(report: RepairReport, file: str | None = None, at: float = 0.0) -> list[Episode]:
    """Return the episodes of a drive, one for each sample; none where no task can be found in it.

    Args:
        report: has a drive.
        file: name of the file it was in, None: the bank.
        at: when it was made, in Unix seconds; 0: not on record.
    """
    assert report.drive is not None
    shots = report.drive.snapshots
    samples = merge_snapshots([_snapshot(one) for one in shots])
    first = _spoken_all(shots[0])
    asked = next((one.without_experience().text for one in first if one.author in ("user", "driver")), "")
    task = _TASK.match(asked)
    if task is None:
        return []
    judged = _judged(shots, report)
    provenance = Provenance(
        source="drive",
        id=run_of(shots),
        file=file,
        policy=report.model or "",
        template=report.drive.template,
        at=at,
        servers=_servers(report),
    )
    return [
        _episode(sample, place, judged, report, task.group("task"), asked, provenance)
        for place, sample in enumerate(samples)
        if sample.trained
    ]


def _episode(
    sample: Sample,
    place: int,
    judged: Mapping[int, _Judged],
    report: RepairReport,
    task: str,
    asked: str,
    provenance: Provenance,
) -> Episode:
    return Episode(
        id=f"drive:{provenance.id.removeprefix('sha256:')[:16]}:{place}",
        group=group_of(asked, {}),
        family=family_of(task),
        task=task,
        tools=tuple(_function(one) for one in report.drive.tools) if report.drive else (),
        messages=tuple(Turn(role=one.role, content=one.text) for one in sample.messages),
        trained=sample.trained,
        steps=tuple(
            _step(index, number, judged[number])
            for index, number in zip(sample.trained, sample.steps, strict=True)
            if number in judged and number is not None
        ),
        experience=tuple(
            ExperienceSpan(message=index, start=span.start, end=span.end, unit=span.unit)
            for index, one in enumerate(sample.messages)
            for span in one.spans
        ),
        outcome=_outcome(report),
        provenance=provenance,
    )


def _function(tool: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    return function_of(str(tool.get("name")), str(tool.get("description") or ""), tool.get("inputSchema"))


def _servers(report: RepairReport) -> tuple[str, ...]:
    """Return the servers whose tools the drive's workflow calls: whose data is in what was shown."""
    nodes = report.workflow.get("nodes")
    listed = [node for node in nodes if isinstance(node, dict)] if isinstance(nodes, list) else []
    tools = [tool for node in listed if isinstance(tool := node.get("tool"), dict)]
    return tuple(sorted({str(tool.get("server")) for tool in tools}))


def _step(message: int, number: int, judged: _Judged) -> EpisodeStep:
    return EpisodeStep(
        index=number - 1,
        messages=(message,),
        node=judged.node,
        label=judged.label,
        label_source="execution",
        reason=judged.reason,
        reward=1.0 if judged.label == "good" else -1.0,
    )


def _outcome(report: RepairReport) -> Outcome:
    """Return what the drive itself came to: what was mended or found after it, it had got wrong."""
    by = tuple(dict.fromkeys(one.by for one in report.verifications))
    only_world = bool(report.faults) and all(fault.evidence == "world" for fault in report.faults)
    score = None
    if report.status == "verified":
        score = 1.0 if _was_right(report) else 0.0
    elif report.status == "failed" and not only_world:
        score = 0.0
    return Outcome(status=report.status, score=score, by=by)


def _was_right(report: RepairReport) -> bool:
    finished = report.drive is not None and report.drive.ended == "finished"
    return finished and not report.edits and not report.initial_faults


def _judged(shots: Sequence[SnapshotRecord], report: RepairReport) -> dict[int, _Judged]:
    """Return the label of each step, from what the model was told after it."""
    assert report.drive is not None
    said = [one for one in shots if one.trainable and one.step is not None]
    kept = _nodes(report)
    found: dict[int, _Judged] = {}
    for one, after in pairwise(said):
        found[one.step or 0] = _judged_by(after.messages[-1].text, one.step or 0, kept)
    if said:
        found[said[-1].step or 0] = _judged_last(report.drive, said[-1].step or 0)
    return found


def _judged_by(told: str, number: int, kept: frozenset[str]) -> _Judged:
    node = f"step{number}"
    if (error := _ERROR.search(told)) is not None:
        return _Judged("bad", f"it failed: {error.group(1)}"[:300], node)
    result = _RESULT.search(told)
    if result is not None and result.group(1) not in kept:
        return _Judged("bad", "nothing that counts reads it", node)
    return _Judged("good", "it ran, and what counts reads it", node)


def _judged_last(drive: DriveReport, number: int) -> _Judged:
    if drive.ended == "finished":
        return _Judged("good", "it finished the task", f"step{number}")
    return _Judged("bad", f"the drive ended by: {drive.ended}", f"step{number}")


def _nodes(report: RepairReport) -> frozenset[str]:
    nodes = report.workflow.get("nodes")
    listed = nodes if isinstance(nodes, list) else []
    return frozenset(str(node.get("id")) for node in listed if isinstance(node, dict))


def _snapshot(record: SnapshotRecord) -> Snapshot:
    return Snapshot(_spoken_all(record), record.reply, is_trainable=record.trainable, step=record.step)


def _spoken_all(record: SnapshotRecord) -> tuple[Spoken, ...]:
    return tuple(
        Spoken(one.role, one.text, one.author, tuple(Span(s.start, s.end, s.unit) for s in one.spans))
        for one in record.messages
    )
