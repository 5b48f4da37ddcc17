"""Sessions: an instance of a family, called on live servers one call after the other.

Every value of a later call is computed from earlier answers by the family, as a client with a
model would; nothing is compiled here.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from catalog.tools import ToolId
from server.bench.families import Family, Made, Sourced, planned_call, planned_value, step_items

__all__ = ["MadeCall", "Session", "alike", "answer_of", "expected_outputs", "is_tuning", "make_session"]

Answering = Callable[[ToolId, dict[str, JsonValue]], Awaitable[JsonValue]]

_OUTPUT_NAME = re.compile(r"[a-z_][a-z0-9_]{0,39}", re.IGNORECASE)
_MOST_OUTPUTS = 12


@dataclass(frozen=True, slots=True)
class MadeCall:
    """One call as it was made. `leaves` are its scalar arguments by pointer, with their sources."""

    tool: ToolId
    arguments: dict[str, JsonValue]
    output: JsonValue
    leaves: Mapping[str, Sourced]
    step: int


@dataclass(frozen=True, slots=True)
class Session:
    """The calls of one instance."""

    family: Family
    number: int
    """Of the instance, from 0."""
    calls: tuple[MadeCall, ...]

    @property
    def given(self) -> dict[str, JsonValue]:
        """What the task gives."""
        return self.family.instances[self.number]

    @property
    def task(self) -> str:
        """The task in words."""
        return self.family.said(self.given)


async def make_session(family: Family, number: int, answering: Answering) -> Session:
    """Make the calls of one instance and return them.

    Raises:
        TasksRejected: the family reads what is not there.
    """
    outputs: list[list[JsonValue]] = []
    numbers: list[list[int]] = []
    calls: list[MadeCall] = []
    for at, step in enumerate(family.steps):
        made = Made(family.instances[number], outputs, numbers)
        items = step_items(step, made)
        answers: list[JsonValue] = []
        own: list[int] = []
        for item in items:
            arguments, leaves = planned_call(step, made, item)
            answers.append(await answering(step.tool_id, arguments))
            own.append(len(calls))
            calls.append(MadeCall(step.tool_id, arguments, answers[-1], leaves, at))
        outputs.append(answers)
        numbers.append(own)
    return Session(family, number, tuple(calls))


def answer_of(session: Session, form: JsonValue) -> JsonValue:
    """Return what a form (`families`) reads from the answers of a session.

    Raises:
        TasksRejected: it reads what is not there.
    """
    steps = range(len(session.family.steps))
    outputs = [[call.output for call in session.calls if call.step == at] for at in steps]
    numbers = [[n for n, call in enumerate(session.calls) if call.step == at] for at in steps]
    return planned_value(form, Made(session.given, outputs, numbers))


def expected_outputs(session: Session) -> dict[str, JsonValue]:
    """Return what a skill of this session gives: what its last call gave, of each call if repeated."""
    last = [call.output for call in session.calls if call.step == session.calls[-1].step]
    whole = [_by_key(output) for output in last]
    if session.family.steps[-1].each is None:
        return whole[0]
    return {key: [one[key] for one in whole] for key in whole[0]}


def _by_key(output: JsonValue) -> dict[str, JsonValue]:
    is_short = isinstance(output, dict) and 0 < len(output) <= _MOST_OUTPUTS
    if is_short and isinstance(output, dict) and all(_OUTPUT_NAME.fullmatch(key) for key in output):
        return output
    return {"result": output}


def alike(one: JsonValue, two: JsonValue, volatile: frozenset[str]) -> bool:
    """Return whether two outputs say the same: numbers to nine digits, volatile keys left out."""
    match one, two:
        case dict(), dict():
            keys = (one.keys() | two.keys()) - volatile
            return all(k in one and k in two and alike(one[k], two[k], volatile) for k in keys)
        case list(), list():
            return len(one) == len(two) and all(alike(a, b, volatile) for a, b in zip(one, two, strict=True))
        case (bool(), _) | (_, bool()):
            return one is two
        case ((int() | float()), (int() | float())):
            return abs(one - two) <= 1e-9 * max(1.0, abs(one), abs(two))
        case _:
            return one == two


def is_tuning(family: Family) -> bool:
    """Return whether a family belongs to the half that the compiler was tuned on, by its id's hash."""
    return hashlib.sha256(family.id.encode()).digest()[0] % 2 == 0
