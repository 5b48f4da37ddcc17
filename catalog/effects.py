"""The effect class of a tool and the one policy that decides a call (`CONTRACTS`, Effects).

Every path asks `decide`: direct call, workflow, repair, exploration, replay, audit. What a tool
is comes from the operator or a confirmed profile (`EffectTable`); proposing a profile belongs
to `catalog.effect_profile`, asking a person for consent to the server.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase

from catalog.tools import ToolId

__all__ = ["Activity", "Decision", "Effect", "EffectTable", "Reset", "Verdict", "decide"]


class Effect(StrEnum):
    """What calling a tool does to the world."""

    PURE = "pure"
    """Same answer for the same arguments."""
    READ = "read"
    WRITE = "write"
    UNKNOWN = "unknown"

    @property
    def is_free(self) -> bool:
        """Whether a call may be repeated at will."""
        return self in (Effect.PURE, Effect.READ)


class Reset(StrEnum):
    """How a server's state is restored."""

    NONE = "none"
    PROCESS = "process"
    """A fresh process restores the state."""
    PROCESS_DIRS = "process+dirs"
    """A fresh process with private HOME, working and temporary folders."""


class Activity(StrEnum):
    """On whose behalf, and how often, a call would happen."""

    CLIENT_CALL = "client_call"
    """A client calls a tool or an active skill."""
    FIRST_RUN = "first_run"
    """First execution of a plan by explicit command."""
    RERUN = "rerun"
    """Re-execution in a repair: later candidates."""
    REPLAY = "replay"
    """Admission replay, audit, exploration."""
    RETRY = "retry"
    """Again after a world fault."""


class Verdict(StrEnum):
    """What the policy says of one call."""

    RUN = "run"
    """On the shared connection."""
    ISOLATE = "isolate"
    """In a process of the candidate's own, thrown away afterwards."""
    ASK = "ask"
    """Only with consent given in the config or by a person now."""
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True)
class Decision:
    """A verdict with its reason, and whether an equal earlier answer may stand in for the call."""

    verdict: Verdict
    reason: str
    memoise: bool = False


@dataclass(frozen=True)
class EffectTable:
    """Effect classes, reset modes and standing consents, as the operator configured them.

    `effects` maps a server to glob patterns over its tools; an exact name wins over a pattern,
    a longer pattern over a shorter one. `allow` maps a server to patterns of non-free tools that
    plans may run once without asking. `changed` holds tools whose contract is not the one that their
    class was given to: what they do is unknown until somebody says it again.
    """

    effects: Mapping[str, Mapping[str, Effect]] = field(default_factory=dict[str, Mapping[str, Effect]])
    reset: Mapping[str, Reset] = field(default_factory=dict[str, Reset])
    allow: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    changed: frozenset[ToolId] = frozenset()

    def effect(self, tool: ToolId) -> Effect:
        """Return the configured class, `unknown` where nothing matches or the tool has changed since."""
        pattern = self.pattern(tool)
        if pattern is None or tool in self.changed:
            return Effect.UNKNOWN
        return self.effects[tool.server][pattern]

    def pattern(self, tool: ToolId) -> str | None:
        """Return the name or pattern that decides the class of a tool: an exact name, else the longest."""
        patterns = self.effects.get(tool.server, {})
        if tool.tool in patterns:
            return tool.tool
        return max((p for p in patterns if fnmatchcase(tool.tool, p)), key=len, default=None)

    def reset_mode(self, server: str) -> Reset:
        """Return how the server is reset, `none` where nothing is configured."""
        return self.reset.get(server, Reset.NONE)

    def allows(self, tool: ToolId) -> bool:
        """Return whether the operator consented to first runs of this tool."""
        return any(fnmatchcase(tool.tool, p) for p in self.allow.get(tool.server, ()))


def decide(effect: Effect, reset: Reset, activity: Activity, *, consented: bool = False) -> Decision:
    """Return what may happen to one call: the table of `CONTRACTS`, Effects, and nothing else.

    Differs: a pure tool of a resettable server runs on the shared connection, since no state of any
    process can change its answer, and only a replay asks for a fresh one; what reads or writes there
    runs in the candidate's own.

    Args:
        effect: class of the tool.
        reset: reset mode of its server.
        activity: why the call would be made.
        consented: whether config or a person allowed this first run.
    """
    if activity is Activity.CLIENT_CALL:
        return Decision(Verdict.RUN, "a client's own call: its approval governs")
    is_remembered = activity not in (Activity.RETRY, Activity.REPLAY)
    if effect is Effect.PURE and (reset is Reset.NONE or activity is not Activity.REPLAY):
        return Decision(Verdict.RUN, "pure: same answer in any process, may repeat", memoise=is_remembered)
    if reset is not Reset.NONE:
        return Decision(
            Verdict.ISOLATE, f"{reset.value} restores the server: it runs in a process of its own"
        )
    if effect.is_free:
        return Decision(Verdict.RUN, f"{effect.value} may repeat", memoise=is_remembered)
    return _decide_costly(effect, activity, consented=consented)


def _decide_costly(effect: Effect, activity: Activity, *, consented: bool) -> Decision:
    match activity:
        case Activity.FIRST_RUN if consented:
            return Decision(Verdict.RUN, f"{effect.value}, first run, allowed")
        case Activity.FIRST_RUN:
            return Decision(Verdict.ASK, f"{effect.value} and not allowed yet")
        case Activity.RERUN:
            return Decision(Verdict.REFUSE, f"{effect.value} is never re-executed in a repair")
        case Activity.REPLAY:
            return Decision(Verdict.REFUSE, f"{effect.value} is never replayed; recorded results only")
        case Activity.RETRY:
            return Decision(Verdict.REFUSE, f"{effect.value} is never retried: it may have run")
        case Activity.CLIENT_CALL:
            raise AssertionError("decided before")
