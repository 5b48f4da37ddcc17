"""Episodes from traces: those in a bank's store, and those of the candidates in a search's record."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from catalog.tools import Snapshot, ToolId
from server.attribution.labels import StepLabel
from server.evolution.errors import RecordUnreadable
from server.evolution.record import read_search
from server.training.episode import Episode, Provenance, Source
from server.training.errors import SourceUnreadable
from server.training.grouping import family_of, group_of
from server.training.telling import is_tellable, outcome_of, tell
from server.training.tools import Toolbox, toolbox
from skills_store.trace import Trace

__all__ = ["Seen", "episodes_of", "read_record"]


@dataclass(frozen=True, slots=True)
class Seen:
    """One trace, and where it was found."""

    trace: Trace
    source: Source = "trace"
    file: str | None = None
    policy: str = ""
    labels: tuple[StepLabel, ...] = ()
    """Of a better source than its execution, for the steps that it tells of."""


def read_record(path: Path) -> list[Seen]:
    """Return the traces of all candidates of a search's record.

    Raises:
        SourceUnreadable: it is no record.
    """
    try:
        kept = read_search(path)
    except RecordUnreadable as error:
        raise SourceUnreadable(str(error)) from error
    found: list[Seen] = []
    for line in kept.candidates:
        if line.trace is not None:
            trace = line.trace if line.trace.task else line.trace.model_copy(update={"task": kept.head.task})
            found.append(Seen(trace, "search", path.name, line.by))
    return found


def episodes_of(seen: Iterable[Seen], snapshot: Snapshot) -> list[Episode]:
    """Return the episodes of those traces that can be told, each trace once.

    Runs of one group are shown the same tools, so that their prompts are equal.
    """
    tellable = {one.trace.id: one for one in seen if is_tellable(one.trace)}
    groups: dict[str, list[Seen]] = {}
    for one in tellable.values():
        groups.setdefault(group_of(one.trace.task or "", one.trace.inputs), []).append(one)
    return [
        _episode(one, group, tools, snapshot)
        for group, members in groups.items()
        for tools in (toolbox(_called(members), snapshot),)
        for one in members
    ]


def _called(members: Iterable[Seen]) -> set[ToolId]:
    return {step.tool for one in members for step in one.trace.steps if step.tool is not None}


def _episode(one: Seen, group: str, tools: Toolbox, snapshot: Snapshot) -> Episode:
    trace = one.trace
    told = tell(trace, tools, one.labels)
    return Episode(
        id=f"{one.source}:{trace.id}",
        group=group,
        family=family_of(trace.task or ""),
        task=trace.task or "",
        tools=tools.schemas,
        messages=told.messages,
        trained=told.trained,
        steps=told.steps,
        outcome=outcome_of(trace),
        provenance=Provenance(
            source=one.source,
            id=trace.id,
            file=one.file,
            workflow_hash=trace.workflow_hash,
            policy=one.policy or trace.level or "",
            simulated=True,
            at=trace.started_at,
            catalog=snapshot.hash,
            servers=tools.servers,
        ),
    )
