"""How a skill stands: what is in use, whether what it needs is there, what it cost and what it saved.

Only what is kept is told: a trace that was dropped is not counted, and what nothing holds is said to
be not known.
"""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median

from catalog.tools import Snapshot
from server.bank.context import Context
from server.bank.drift import changed_pins
from server.bank.episode.planning_cost import planning_saved
from server.bank.using import require_skill
from server.reports import MoveReport, NeededTool, RunCost, ShownSkill, Standing, UseReport
from skills_store.skill import Pin, Skill
from skills_store.trace import Trace
from skills_store.utility import success_interval

__all__ = ["show_skill"]

_MOVES_SHOWN = 5
_USES_READ = 200


def show_skill(name: str, version: int | None, context: Context) -> ShownSkill:
    """Return a skill, its head where no version is given, with how it stands.

    Raises:
        UnknownSkill: no such skill or version.
    """
    skill, head = require_skill(name, version, context), require_skill(name, None, context)
    context.afterwards.finish()
    moves = [change for change in context.store.changes(name) if change.version == skill.version]
    standing = Standing(
        in_use=head.version,
        pinned=context.store.pinned(name),
        published=name in context.store.published() and head.state == "active",
        moves=tuple(
            MoveReport(before=m.before, after=m.after, by=m.by, reason=m.reason, at=m.at)
            for m in moves[-_MOVES_SHOWN:]
        ),
        tools=tuple(_needed(pin, skill, context.known(), context) for pin in skill.pins),
        skills=tuple(f"{n.skill.name}@{n.skill.version}" for n in skill.workflow.nodes if n.skill),
        learned=_cost(_learned_from(skill, context)),
        admission_seconds=sum(check.seconds for check in skill.verdict.checks) if skill.verdict else 0.0,
        use=_use(skill, context),
    )
    return ShownSkill(**dict(skill), standing=standing)


def _needed(pin: Pin, skill: Skill, snapshot: Snapshot, context: Context) -> NeededTool:
    server = pin.tool.server
    is_listed = server in snapshot.servers or context.is_ready(server)
    return NeededTool(
        server=server,
        tool=pin.tool.tool,
        effect=context.effects.effect(pin.tool),
        configured=server in context.config.servers,
        holds=pin.tool not in changed_pins(skill, snapshot, context) if is_listed else None,
    )


def _learned_from(skill: Skill, context: Context) -> list[Trace]:
    """Return the kept traces of the runs and conversations a skill was made from."""
    store, found = context.store, dict[str, Trace]()
    for name in skill.provenance.traces:
        trace = store.trace(name)
        found |= {t.id: t for t in ([trace] if trace is not None else store.recording(name))}
    return [*found.values()]


def _cost(traces: Iterable[Trace]) -> RunCost | None:
    known = list(traces)
    if not known:
        return None
    seconds = [trace.seconds for trace in known]
    return RunCost(
        runs=len(known), calls=sum(t.calls for t in known), seconds=sum(seconds), median=median(seconds)
    )


def _use(skill: Skill, context: Context) -> UseReport:
    store, name = context.store, skill.name
    counts, uses = store.use_counts(name), store.uses(name, _USES_READ)
    interval = success_interval(counts)
    traces = [(use, store.trace(use.trace)) for use in uses if use.trace is not None]
    kept = [(use, trace) for use, trace in traces if trace is not None]
    return UseReport(
        uses=counts.uses,
        successes=counts.successes,
        world_faults=counts.world_faults,
        likely_at_least=interval.low,
        cost=_cost(trace for _, trace in kept),
        planning=planning_saved(skill, counts.successes),
        round_trips_saved=sum(max(0, len(trace.steps) - 1) for use, trace in kept if use.succeeded),
    )
