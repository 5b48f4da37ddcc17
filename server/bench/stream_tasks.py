"""Streams of recurring tasks over real tool servers: families with varied values, and their right answers.

Every answer is computed here, by Python alone; the tool servers are asked by what is measured. A task
brings its answer twice: as the check that a bank is told, and as the truth that judges it afterwards.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from random import Random

from pydantic import JsonValue

__all__ = [
    "CONVERT_TIME",
    "FAMILIES",
    "SERVERS",
    "PlannedCall",
    "StreamFamily",
    "StreamTask",
    "Value",
    "drawn_time",
    "hash_call",
    "hashed",
    "local_time",
    "number_of",
    "servers_of",
    "stream_of",
    "sum_call",
    "unit_call",
]

SERVERS = ("mathematics", "calculator", "hashlib", "time")
"""Of `server.provisioning.demo_servers`, that the families are solved on."""

Value = float | int | str
_Values = Mapping[str, Value]
_WORDS = ("harbour", "blue whale", "north wind", "weekly report", "alpha", "zebra", "green tea", "last train")
_ZONES = {"Asia/Tokyo": 9 * 60, "Asia/Kolkata": 330, "Africa/Lagos": 60, "Asia/Dubai": 240}
"""Zones without daylight saving time, in minutes from UTC."""
_NEAR = 1e-4
"""How far off a number may be, as a part of it: tools round."""


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """One call of a family's reference plan: `=NAME` is a value of the task, `$n1.…` an earlier answer."""

    tool: str
    """`SERVER/TOOL`."""
    arguments: Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True)
class StreamFamily:
    """One family: its words, how its values are drawn, its right answer, and a plan that gives it."""

    id: str
    task: str
    draw: Callable[[Random], _Values]
    answer: Callable[[_Values], Value]
    place: str
    """Where the check looks for the answer, below `output`; empty: anywhere, as a part of a text."""
    plan: tuple[PlannedCall, ...]

    @property
    def tools(self) -> frozenset[str]:
        """The names of the tools its plan calls."""
        return frozenset(call.tool.partition("/")[2] for call in self.plan)


@dataclass(frozen=True, slots=True)
class StreamTask:
    """One task of a stream."""

    number: int
    family: StreamFamily
    task: str
    values: _Values
    answer: Value
    """What Python computed."""
    is_checked: bool = True
    """Whether it comes with its check."""
    is_shown: bool = False
    """Whether a client works it out and shows it to the bank, instead of asking."""

    @property
    def assertion(self) -> str:
        """The check that a bank is told, over `output`."""
        if not self.family.place:
            return f"contains(to_string(output), '{self.answer}')"
        place = f"output.{self.family.place}"
        if isinstance(self.answer, str):
            return f"{place} == '{self.answer}'"
        return f"approx({place}, `{self.answer!r}`, `{_tolerance(self.answer)!r}`)"

    def is_answered_by(self, outputs: JsonValue) -> bool:
        """Return whether the right answer is among the values of some outputs, by Python alone."""
        return any(self._is(leaf) for leaf in _leaves(outputs))

    def _is(self, leaf: JsonValue) -> bool:
        match self.answer, leaf:
            case str(), str():
                return leaf == self.answer if self.family.place else self.answer in leaf
            case ((int() | float()), (int() | float())) if not isinstance(leaf, bool):
                return abs(leaf - self.answer) <= _tolerance(self.answer)
            case _:
                return False


def _tolerance(answer: float) -> float:
    return max(1e-6, abs(answer) * _NEAR)


def _leaves(value: JsonValue) -> Iterator[JsonValue]:
    match value:
        case dict():
            for part in value.values():
                yield from _leaves(part)
        case list():
            for part in value:
                yield from _leaves(part)
        case _:
            yield value


def _text(dice: Random) -> _Values:
    return {"text": f"{dice.choice(_WORDS)} {dice.randint(1, 999)}"}


def _two(dice: Random) -> _Values:
    return {"a": dice.randint(2, 400), "b": round(dice.uniform(1.5, 90), 1)}


def _three(dice: Random) -> _Values:
    return {**_two(dice), "c": round(dice.uniform(401, 900), 2)}


def _one(dice: Random) -> _Values:
    return {"a": round(dice.uniform(2, 900), 1)}


def _number(dice: Random) -> _Values:
    return {"a": dice.randint(5, 200)}


def drawn_time(dice: Random) -> _Values:
    """Return a time of day and a zone without daylight saving time."""
    return {"time": f"{dice.randint(0, 23):02}:{dice.randint(0, 59):02}", "zone": dice.choice([*_ZONES])}


def number_of(compute: Callable[[Mapping[str, float]], float]) -> Callable[[_Values], Value]:
    """Return the answer that a formula over a task's numbers gives."""
    return lambda values: compute({name: float(value) for name, value in values.items()})


def hashed(*algorithms: str) -> Callable[[_Values], Value]:
    """Return what gives the digest of a text, of which the next algorithm makes its own, and so on."""

    def digest(values: _Values) -> Value:
        text = str(values["text"])
        for algorithm in algorithms:
            text = hashlib.new(algorithm, text.encode()).hexdigest()
        return text

    return digest


def local_time(values: _Values) -> Value:
    """Return what a zone's clocks show at a time of day in UTC."""
    hours, _, minutes = str(values["time"]).partition(":")
    there = (int(hours) * 60 + int(minutes) + _ZONES[str(values["zone"])]) % (24 * 60)
    return f"T{there // 60:02}:{there % 60:02}:00"


def _totient(values: _Values) -> Value:
    number = int(values["a"])
    return sum(math.gcd(number, other) == 1 for other in range(1, number + 1))


def hash_call(algorithm: str, data: str) -> PlannedCall:
    """Return the call that hashes a text."""
    return PlannedCall(f"hashlib/hash_{algorithm}", {"data": data})


def sum_call(tool: str, a: str, b: str) -> PlannedCall:
    """Return a call of the calculator."""
    return PlannedCall(f"calculator/{tool}", {"a": a, "b": b})


def unit_call(kind: str, one: str, other: str, value: str) -> PlannedCall:
    """Return the call that converts a value between units of a kind."""
    given: dict[str, JsonValue] = {"value": value, "from_unit": one, "to_unit": other, "unit_type": kind}
    return PlannedCall("mathematics/convert_units", given)


CONVERT_TIME = PlannedCall(
    "time/convert_time", {"source_timezone": "UTC", "time": "=time", "target_timezone": "=zone"}
)
_TOTIENT = PlannedCall("mathematics/analyze_number_theory", {"number": "=a", "operation": "totient"})
_RESULT, _CONVERTED = "result", "result.output_value"

FAMILIES: tuple[StreamFamily, ...] = (
    StreamFamily(
        "sha256",
        "Compute the sha256 hash of the text '{text}'",
        _text,
        hashed("sha256"),
        _RESULT,
        (hash_call("sha256", "=text"),),
    ),
    StreamFamily(
        "product_and_sum",
        "Multiply {a} and {b}, then add {c} to the product",
        _three,
        number_of(lambda v: v["a"] * v["b"] + v["c"]),
        _RESULT,
        (sum_call("multiply", "=a", "=b"), sum_call("add", "$n1.result", "=c")),
    ),
    StreamFamily(
        "md5",
        "Compute the MD5 hash of the text '{text}'",
        _text,
        hashed("md5"),
        _RESULT,
        (hash_call("md5", "=text"),),
    ),
    StreamFamily(
        "digest_of_digest",
        "Compute the sha256 hash of the text '{text}', then compute the MD5 hash of that digest",
        _text,
        hashed("sha256", "md5"),
        _RESULT,
        (hash_call("sha256", "=text"), hash_call("md5", "$n1.result")),
    ),
    StreamFamily(
        "product",
        "Multiply {a} and {b}",
        _two,
        number_of(lambda v: v["a"] * v["b"]),
        _RESULT,
        (sum_call("multiply", "=a", "=b"),),
    ),
    StreamFamily(
        "difference",
        "Subtract {b} from {a}",
        _two,
        number_of(lambda v: v["a"] - v["b"]),
        _RESULT,
        (sum_call("subtract", "=a", "=b"),),
    ),
    StreamFamily(
        "quotient_and_difference",
        "Divide {c} by {b}, then subtract {a} from the quotient",
        _three,
        number_of(lambda v: v["c"] / v["b"] - v["a"]),
        _RESULT,
        (sum_call("divide", "=c", "=b"), sum_call("subtract", "$n1.result", "=a")),
    ),
    StreamFamily(
        "kilometers",
        "Convert {a} miles to km",
        _one,
        number_of(lambda v: v["a"] * 1.609344),
        _CONVERTED,
        (unit_call("length", "miles", "km", "=a"),),
    ),
    StreamFamily(
        "fahrenheit",
        "Convert {a} celsius to fahrenheit",
        _one,
        number_of(lambda v: v["a"] * 1.8 + 32),
        _CONVERTED,
        (unit_call("temperature", "celsius", "fahrenheit", "=a"),),
    ),
    StreamFamily(
        "distance_times",
        "Convert {a} miles to km, then multiply the distance by {b}",
        lambda dice: {"a": dice.randint(2, 400), "b": round(dice.uniform(1.5, 90), 1)},
        number_of(lambda v: v["a"] * 1.609344 * v["b"]),
        _RESULT,
        (unit_call("length", "miles", "km", "=a"), sum_call("multiply", "$n1.output_value", "=b")),
    ),
    StreamFamily(
        "totient", "What is the Euler totient of {a}?", _number, _totient, "result.result", (_TOTIENT,)
    ),
    StreamFamily(
        "local_time",
        "Convert the time {time} from UTC to {zone}",
        drawn_time,
        local_time,
        "",
        (CONVERT_TIME,),
    ),
)


def stream_of(length: int, seed: int, families: tuple[StreamFamily, ...] = FAMILIES) -> list[StreamTask]:
    """Return a stream of tasks, families mixed, the same for the same seed."""
    dice = Random(f"stream:{seed}")
    tasks: list[StreamTask] = []
    for number in range(length):
        family = dice.choice(families)
        values = family.draw(dice)
        said = family.task.format(**{name: _said(value) for name, value in values.items()})
        tasks.append(StreamTask(number, family, said, values, family.answer(values)))
    return tasks


def servers_of(stream: Iterable[StreamTask]) -> tuple[str, ...]:
    """Return the servers that the reference plans of some tasks call, in the order of `SERVERS`."""
    called = {call.tool.partition("/")[0] for task in stream for call in task.family.plan}
    return tuple(name for name in SERVERS if name in called)


def _said(value: Value) -> str:
    return value if isinstance(value, str) else json.dumps(value)
