"""Tries whether a fresh process really restores a server, as its reset mode claims.

A write in one fresh process, seen there by a tool that only reads, must not be seen in the next
fresh process, and must leave no file behind outside of the private folders. What is called is
given; whether it may be called was asked before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from anyio import to_thread
from pydantic import JsonValue

from catalog.canonical import digest
from catalog.config import ServerSpec, expand
from catalog.effects import Effect, EffectTable, Reset
from catalog.result import CallFailure, CallOutcome
from catalog.schema import samples
from catalog.tools import Tool
from server.watched_files import FileState, changed_files, is_only_home, look_at, watched_places

if TYPE_CHECKING:
    from catalog.connection import Connection
    from catalog.connections import Connections

__all__ = ["ResetTrial", "TrialCall", "TrialVerdict", "observers", "propose_write", "try_reset"]

_CALL_SECONDS: Final = 30.0
_MAX_OBSERVERS: Final = 8
_SHOWN_FILES: Final = 3
_RISKY: Final = ("command", "code", "script", "url", "uri", "host", "email", "recipient", "to")


@dataclass(frozen=True, slots=True)
class TrialCall:
    """A call that a trial makes."""

    tool: str
    arguments: dict[str, JsonValue]


@dataclass(frozen=True, slots=True)
class ResetTrial:
    """What is to be tried: the mode, the writes in their order, the reads that may show them."""

    spec: ServerSpec
    mode: Reset
    writes: tuple[TrialCall, ...]
    reads: tuple[TrialCall, ...]


@dataclass(frozen=True, slots=True)
class TrialVerdict:
    """What a trial came to: `holds`, `refuted`, or `undecided` where it could not tell."""

    verdict: Literal["holds", "refuted", "undecided"]
    why: str


@dataclass(frozen=True, slots=True)
class _Seen:
    """What one fresh process showed: digests of answers by read, and its files."""

    answers: Mapping[int, str]
    problem: str | None = None


def observers(tools: Sequence[Tool], effects: EffectTable) -> tuple[TrialCall, ...]:
    """Return calls without arguments of tools that only read: what may show that something changed."""
    free = [
        tool
        for tool in tools
        if effects.effect(tool.id) is Effect.READ and not tool.input_schema.get("required")
    ]
    return tuple(TrialCall(tool.id.tool, {}) for tool in free[:_MAX_OBSERVERS])


def propose_write(tools: Sequence[Tool], effects: EffectTable) -> TrialCall | None:
    """Return a call that writes and could be tried, None where none is plain enough.

    Only of a tool known to write whose parameters name no address, command or recipient.
    """
    for tool in tools:
        properties = tool.input_schema.get("properties")
        names = set(properties) if isinstance(properties, dict) else set[str]()
        if effects.effect(tool.id) is not Effect.WRITE or any(risky in names for risky in _RISKY):
            continue
        for sample in samples(tool.input_schema, 0, 1):
            if isinstance(sample, dict):
                return TrialCall(tool.id.tool, sample)
    return None


async def try_reset(
    connections: Connections, trial: ResetTrial, environment: Mapping[str, str]
) -> TrialVerdict:
    """Return whether a fresh process restores the server, after four of them were started.

    Args:
        connections: offer the server.
        trial: what is tried; the writes are made once.
        environment: of the server.
    """
    places = watched_places(expand(trial.spec, environment), environment)

    async def look() -> FileState:
        return await to_thread.run_sync(look_at, places)

    at_first = await look()
    untouched = await _fresh(connections, trial, write=False)
    control = await _fresh(connections, trial, write=False)
    before = await look()
    written = await _fresh(connections, trial, write=True)
    after = await look()
    again = await _fresh(connections, trial, write=False)
    for seen in (untouched, control, written, again):
        if seen.problem is not None:
            return TrialVerdict("undecided", seen.problem)
    left = changed_files(before, after) - changed_files(at_first, before)
    if own := sorted(path for path in left if not is_only_home(path, places)):
        return TrialVerdict("refuted", f"the write left files changed behind: {_shown(own)}")
    stable = [n for n, answer in untouched.answers.items() if control.answers[n] == answer]
    if kept := [n for n in stable if again.answers[n] != untouched.answers[n]]:
        return TrialVerdict(
            "refuted", f"{trial.reads[kept[0]].tool} of the next process still shows the write"
        )
    if left:
        return TrialVerdict(
            "undecided", f"files changed meanwhile, maybe by another program: {_shown(sorted(left))}"
        )
    if showing := [n for n in stable if written.answers[n] != untouched.answers[n]]:
        tool = trial.reads[showing[0]].tool
        return TrialVerdict(
            "holds", f"{tool} showed the write in its own process, not in the next; no file changed"
        )
    return TrialVerdict("undecided", "no tool that only reads showed the write: name one with --read")


def _shown(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - _SHOWN_FILES} more" if len(paths) > _SHOWN_FILES else ""
    return ", ".join(paths[:_SHOWN_FILES]) + more


async def _fresh(connections: Connections, trial: ResetTrial, *, write: bool) -> _Seen:
    """Return what a fresh process shows, after the writes where they are to be made."""
    async with connections.isolated(trial.spec.name, trial.mode) as connection:
        if not await connection.ready():
            reason = "; ".join(connection.problems) or "it does not answer"
            return _Seen({}, f"a fresh process could not be started: {reason}")
        for call in trial.writes if write else ():
            outcome = await _call(connection, call)
            if isinstance(outcome, CallFailure):
                return _Seen({}, f"the write failed: {call.tool}: {outcome.message}")
        answers: dict[int, str] = {}
        for number, call in enumerate(trial.reads):
            outcome = await _call(connection, call)
            answers[number] = (
                f"failed: {outcome.kind}" if isinstance(outcome, CallFailure) else digest(outcome.output)
            )
    return _Seen(answers)


async def _call(connection: Connection, call: TrialCall) -> CallOutcome:
    return await connection.call(call.tool, call.arguments, timeout_seconds=_CALL_SECONDS)
