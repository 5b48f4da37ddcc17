"""The family of a run: a kept skill that makes the same calls and becomes wider by it.

Finding out what two runs have in common is `server.compilation.widening`; judging and keeping the
wider skill is `learning`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from catalog.tools import Snapshot
from server.bank.admission.judging import is_said
from server.bank.context import Context
from server.compilation.errors import NotCompilable
from server.compilation.prose import render_description, render_guidance
from server.compilation.signature import compile_signature
from server.compilation.widening import Widened, widen
from skills_store.skill import Skill, SkillState
from skills_store.workflow.hashing import content_hash, shape_hash

__all__ = ["Family", "family_of", "find_family", "widened_skill"]

_OPEN: frozenset[SkillState] = frozenset({"proposed", "context_only", "active"})


@dataclass(frozen=True, slots=True)
class Family:
    """A kept skill, and how one reading of a run widens it."""

    known: Skill
    run: Skill
    reading: int
    widened: Widened


def find_family(readings: Sequence[Skill], explicit: bool, context: Context) -> Family | None:
    """Return the kept skill that the run widens least, None where there is none without a guess.

    What a person saved under another name, wrote or pinned is left as it is.
    """
    found = [
        Family(known, run, reading, widened)
        for known in _relatives(readings[0], explicit, context)
        for reading, run in enumerate(readings)
        if (widened := _widened(known, run, context)) is not None
        if explicit or _is_asked_for(widened, known, run)
    ]
    return min(found, key=lambda family: (len(family.widened.added), family.known.name), default=None)


def family_of(known: Skill, run: Skill, context: Context) -> Family | None:
    """Return two skills of the same calls as one, None where that takes a guess."""
    if [node.target for node in known.workflow.nodes] != [node.target for node in run.workflow.nodes]:
        return None
    widened = _widened(known, run, context)
    return None if widened is None else Family(known, run, 0, widened)


def _relatives(run: Skill, explicit: bool, context: Context) -> Iterator[Skill]:
    """Yield the kept skills that make the same calls in the same order."""
    calls = [node.target for node in run.workflow.nodes]
    for head in context.heads():
        is_open = head.state in _OPEN and head.origin == "system" and (not explicit or head.name == run.name)
        is_open &= context.store.pinned(head.name) is None
        if is_open and [node.target for node in head.workflow.nodes] == calls:
            yield head


def _widened(known: Skill, run: Skill, context: Context) -> Widened | None:
    try:
        return widen(known, run, context.known(), optional=known.state != "proposed")
    except NotCompilable:
        return None


def _is_asked_for(widened: Widened, known: Skill, run: Skill) -> bool:
    """Return whether the tasks of both runs say what the new inputs were given.

    What no task says, no task can bind: such a skill would take the neighbour's tasks and answer
    them with its own constants.
    """
    return all(
        is_said(widened.one[name], known.provenance.task or "")
        and is_said(widened.two[name], run.provenance.task or "")
        for name in widened.added
    )


def widened_skill(family: Family, snapshot: Snapshot, now: float) -> Skill:
    """Return the wider skill as a candidate for the next version of the kept one."""
    known, run, wide = family.known, family.run, family.widened
    workflow = wide.workflow.model_copy(update={"name": known.name})
    first = known.tests[0].model_copy(update={"inputs": wide.one})
    signature = compile_signature(workflow, first.outputs, snapshot)
    traces = (*known.provenance.traces, *run.provenance.traces)
    said = (*known.provenance.verifications, *run.provenance.verifications)
    plannings = (*known.provenance.plannings, *run.provenance.plannings)
    return known.model_copy(
        update={
            "state": "proposed",
            "reason": "compiled from two runs; waits for evidence",
            "workflow": workflow,
            "content_hash": content_hash(workflow),
            "shape_hash": shape_hash(workflow),
            "signature": signature,
            "description": render_description(workflow, signature),
            "guidance": render_guidance(known.provenance.task, workflow),
            "tests": (first, wide.second),
            "pins": run.pins,
            "provenance": known.provenance.model_copy(
                update={"traces": traces, "verifications": said, "plannings": plannings}
            ),
            "verdict": None,
            "created_at": now,
        }
    )
