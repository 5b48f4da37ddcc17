"""Which state of a skill version may follow which, and at whose word (`CONTRACTS`, Skill states).

The table is data. Judging evidence for the first state belongs to `admission`, deciding when a
skill in use is suspected to curation, keeping the log of moves to `store`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from skills_store.errors import IllegalTransition
from skills_store.skill import Skill, SkillState

__all__ = [
    "STATES",
    "TRANSITIONS",
    "Actor",
    "StateChange",
    "check_entry",
    "check_pinned",
    "check_transition",
    "check_words",
]

Actor = Literal["person", "system"]

STATES: tuple[SkillState, ...] = (
    "proposed",
    "active",
    "context_only",
    "shadow",
    "suppressed",
    "stale",
    "rejected",
    "retired",
)

_ANYBODY: tuple[Actor, ...] = ("person", "system")
_PERSON: tuple[Actor, ...] = ("person",)
_SYSTEM: tuple[Actor, ...] = ("system",)

_TABLE: tuple[tuple[tuple[SkillState, ...], SkillState, tuple[Actor, ...]], ...] = (
    (("proposed",), "active", _ANYBODY),
    (("proposed",), "context_only", _ANYBODY),
    (("proposed",), "shadow", _SYSTEM),
    (("proposed",), "rejected", _PERSON),
    (("active",), "context_only", _ANYBODY),
    (("active", "context_only"), "suppressed", _ANYBODY),
    (("active", "context_only"), "stale", _SYSTEM),
    (("stale",), "active", _ANYBODY),
    (("stale",), "context_only", _ANYBODY),
    (("suppressed", "shadow"), "proposed", _ANYBODY),
    (("context_only",), "active", _PERSON),
    (("suppressed",), "context_only", _PERSON),
    (("retired",), "proposed", _PERSON),
    (tuple(state for state in STATES if state != "retired"), "retired", _ANYBODY),
)

TRANSITIONS: frozenset[tuple[SkillState, SkillState, Actor]] = frozenset(
    (before, after, actor) for befores, after, actors in _TABLE for before in befores for actor in actors
)
"""Every legal move as (from, to, by). Staying in a state is no move."""

_DRIFT: frozenset[tuple[SkillState, SkillState]] = frozenset(
    {("active", "stale"), ("context_only", "stale"), ("stale", "active"), ("stale", "context_only")}
)
"""What the system may do even to a skill a person wrote or pinned: follow its pins, and back again."""


@dataclass(frozen=True, slots=True)
class StateChange:
    """One line of the append-only log of moves. `before` is None when the version was added."""

    version: int
    before: SkillState | None
    after: SkillState
    by: Actor
    reason: str
    at: float
    """Unix seconds."""


def check_transition(skill: Skill, to: SkillState, by: Actor) -> None:
    """Check that this version may move to another state at the word of a person or the system.

    Raises:
        IllegalTransition: the table has no such move, or the skill is a person's and the system
            would do more than follow a changed or re-verified pin.
    """
    named = f"{skill.name}@{skill.version}"
    if (skill.state, to, by) not in TRANSITIONS:
        raise IllegalTransition(f"{named}: {_why_not(skill.state, to, by)}")
    if skill.origin == "user" and by == "system" and (skill.state, to) not in _DRIFT:
        raise IllegalTransition(
            f"{named} was written by a person: only a person moves it from {skill.state} to {to}"
        )


def check_words(skill: Skill, to: SkillState) -> None:
    """Check that a move may bring a version's words: the one that makes what waited active, of the system's.

    Raises:
        IllegalTransition: callers have seen it in its words, or a person wrote them.
    """
    named = f"{skill.name}@{skill.version}"
    if skill.origin == "user":
        raise IllegalTransition(f"{named} was written by a person: its words stay")
    if (skill.state, to) != ("proposed", "active"):
        raise IllegalTransition(f"{named}: its words are settled once it has been active")


def check_pinned(skill: Skill, to: SkillState, by: Actor, pinned: int | None) -> None:
    """Check that a pin lets this version move: of a pinned name the system only follows changed tools.

    Raises:
        IllegalTransition: the name is pinned and the move is the system's.
    """
    if pinned is not None and by == "system" and (skill.state, to) not in _DRIFT:
        raise IllegalTransition(f"{skill.name} is pinned to version {pinned}: only a person moves it")


def check_entry(skill: Skill) -> Actor:
    """Check that a new version may begin in its state; return at whose word it does.

    Every version is born `proposed`. One that carries another state has made its first move
    already, at the word of whoever it comes from, and that move must be legal.

    Raises:
        IllegalTransition: no such first move.
    """
    by: Actor = "person" if skill.origin == "user" else "system"
    if skill.state != "proposed":
        check_transition(skill.model_copy(update={"state": "proposed"}), skill.state, by)
    return by


def _why_not(before: SkillState, to: SkillState, by: Actor) -> str:
    if any((before, to, actor) in TRANSITIONS for actor in _ANYBODY):
        return f"a {by} cannot move a skill from {before} to {to}"
    reachable = sorted({after for start, after, _ in TRANSITIONS if start == before})
    return f"no move from {before} to {to}; from {before} there is {', '.join(reachable) or 'none'}"
