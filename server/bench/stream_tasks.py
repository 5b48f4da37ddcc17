"""Streams of recurring tasks over real tool servers: families with varied values, and their right answers.

Every answer is computed here, by Python alone; the tool servers are asked by what is measured.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random

__all__ = ["FAMILIES", "SERVERS", "StreamFamily", "StreamTask", "stream_of"]

SERVERS = ("mathematics", "calculator", "hashlib", "time")
"""Of `server.bench.servers`, that the families are solved on."""

_Values = Mapping[str, float | int | str]
_WORDS = ("harbour", "blue whale", "north wind", "weekly report", "alpha", "zebra", "green tea", "last train")
_ZONES = {"Asia/Tokyo": 9 * 60, "Asia/Kolkata": 330, "Africa/Lagos": 60, "Asia/Dubai": 240}
"""Zones without daylight saving time, in minutes from UTC."""


@dataclass(frozen=True, slots=True)
class StreamFamily:
    """One family: its words, how its values are drawn, and what holds for a right answer."""

    id: str
    task: str
    draw: Callable[[Random], _Values]
    right: Callable[[_Values], str]
    """The assertion over `output`."""


@dataclass(frozen=True, slots=True)
class StreamTask:
    """One task of a stream."""

    number: int
    family: str
    task: str
    assertion: str


def _text(dice: Random) -> _Values:
    return {"text": f"{dice.choice(_WORDS)} {dice.randint(1, 999)}"}


def _two(dice: Random) -> _Values:
    return {"a": dice.randint(2, 400), "b": round(dice.uniform(1.5, 90), 1)}


def _one(dice: Random) -> _Values:
    return {"a": round(dice.uniform(2, 900), 1)}


def _near(path: str, value: float) -> str:
    return f"approx({path}, `{value!r}`, `{max(1e-6, abs(value) * 1e-4)!r}`)"


def _hashed(algorithm: str) -> Callable[[_Values], str]:
    def right(values: _Values) -> str:
        digest = hashlib.new(algorithm, str(values["text"]).encode()).hexdigest()
        return f"output.result == '{digest}'"

    return right


def _number(compute: Callable[[float, float], float]) -> Callable[[_Values], str]:
    def right(values: _Values) -> str:
        return _near("output.result", compute(float(values["a"]), float(values["b"])))

    return right


def _converted(compute: Callable[[float], float]) -> Callable[[_Values], str]:
    def right(values: _Values) -> str:
        return _near("output.result.output_value", compute(float(values["a"])))

    return right


def _zoned(dice: Random) -> _Values:
    return {"time": f"{dice.randint(0, 23):02}:{dice.randint(0, 59):02}", "zone": dice.choice([*_ZONES])}


def _local(values: _Values) -> str:
    hours, _, minutes = str(values["time"]).partition(":")
    there = (int(hours) * 60 + int(minutes) + _ZONES[str(values["zone"])]) % (24 * 60)
    return f"contains(to_string(output), 'T{there // 60:02}:{there % 60:02}:00')"


def _totient(values: _Values) -> str:
    number = int(values["a"])
    count = sum(math.gcd(number, other) == 1 for other in range(1, number + 1))
    return f"output.result.result == `{count}`"


FAMILIES: tuple[StreamFamily, ...] = (
    StreamFamily("sha256", "Compute the sha256 hash of the text '{text}'", _text, _hashed("sha256")),
    StreamFamily("md5", "Compute the MD5 hash of the text '{text}'", _text, _hashed("md5")),
    StreamFamily("sha1", "What is the SHA1 hash of the text '{text}'?", _text, _hashed("sha1")),
    StreamFamily("sha512", "Give the sha512 hash of the text '{text}'", _text, _hashed("sha512")),
    StreamFamily("product", "Multiply {a} and {b}", _two, _number(lambda a, b: a * b)),
    StreamFamily("quotient", "Divide {a} by {b}", _two, _number(lambda a, b: a / b)),
    StreamFamily("difference", "Subtract {b} from {a}", _two, _number(lambda a, b: a - b)),
    StreamFamily("sum", "Add {a} and {b}", _two, _number(lambda a, b: a + b)),
    StreamFamily("kilometers", "Convert {a} miles to km", _one, _converted(lambda a: a * 1.609344)),
    StreamFamily("fahrenheit", "Convert {a} celsius to fahrenheit", _one, _converted(lambda a: a * 1.8 + 32)),
    StreamFamily(
        "totient",
        "What is the Euler totient of {a}?",
        lambda dice: {"a": dice.randint(5, 200)},
        _totient,
    ),
    StreamFamily("local_time", "Convert the time {time} from UTC to {zone}", _zoned, _local),
)


def stream_of(length: int, seed: int, families: tuple[StreamFamily, ...] = FAMILIES) -> list[StreamTask]:
    """Return a stream of tasks, families mixed, the same for the same seed."""
    dice = Random(f"stream:{seed}")
    tasks: list[StreamTask] = []
    for number in range(length):
        family = dice.choice(families)
        values = family.draw(dice)
        said = family.task.format(**{name: _said(value) for name, value in values.items()})
        tasks.append(StreamTask(number, family.id, said, family.right(values)))
    return tasks


def _said(value: float | int | str) -> str:
    return value if isinstance(value, str) else json.dumps(value)
