"""The harder stream: families that a planner without a model gets wrong at first, and what teaches them.

A planner that goes by words makes a plan of too few calls for the found families, and finds the right
one only by trying, where a check tells right from wrong. For the shown ones it has no plan at all: a
client works their first two tasks out and saves them. Half of the tasks asked come without a check,
as most callers ask, so that nothing but a skill or a plan makes their answers right.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from random import Random

from server.bench.stream_tasks import (
    CONVERT_TIME,
    PlannedCall,
    StreamFamily,
    StreamTask,
    Value,
    drawn_time,
    hash_call,
    hashed,
    local_time,
    number_of,
    stream_of,
    sum_call,
    unit_call,
)

__all__ = ["FOUND_FAMILIES", "SHOWN_FAMILIES", "hard_stream"]

_RESULT = "result"
_SHOWN_TASKS = 2
"""Of each shown family, that a client works out."""
_CHECKED = 0.5


def _amounts(dice: Random) -> Mapping[str, Value]:
    several, some = dice.randint(3, 40), round(dice.uniform(1.5, 90), 1)
    return {"n": several, "b": some, "c": round(dice.uniform(401, 900), 2)}


def _four(dice: Random) -> Mapping[str, Value]:
    return {**_amounts(dice), "d": round(dice.uniform(100, 200), 1)}


def _text(dice: Random) -> Mapping[str, Value]:
    return {"text": f"{dice.choice(('ledger', 'red kite', 'old mill', 'page'))} {dice.randint(1, 999)}"}


def _person(dice: Random) -> Mapping[str, Value]:
    return {"w": round(dice.uniform(45, 110), 1), "h": round(dice.uniform(1.5, 2), 2)}


FOUND_FAMILIES: tuple[StreamFamily, ...] = (
    StreamFamily(
        "three_digests",
        "Compute the sha256 hash of the text '{text}', then the MD5 hash of that digest, then the SHA1 hash"
        " of what that gives",
        _text,
        hashed("sha256", "md5", "sha1"),
        _RESULT,
        (hash_call("sha256", "=text"), hash_call("md5", "$n1.result"), hash_call("sha1", "$n2.result")),
    ),
    StreamFamily(
        "long_sum",
        "Add {n} and {b}, multiply the sum by {c}, then subtract {d} from the product",
        _four,
        number_of(lambda v: (v["n"] + v["b"]) * v["c"] - v["d"]),
        _RESULT,
        (
            sum_call("add", "=n", "=b"),
            sum_call("multiply", "$n1.result", "=c"),
            sum_call("subtract", "$n2.result", "=d"),
        ),
    ),
    StreamFamily(
        "checksum",
        "Two files agree if their checksums do. What is that of '{text}', 32 digits long?",
        _text,
        hashed("md5"),
        _RESULT,
        (hash_call("md5", "=text"),),
    ),
    StreamFamily(
        "power_less",
        "Raise {b} to the power of 3 and subtract {c}",
        _amounts,
        number_of(lambda v: v["b"] ** 3 - v["c"]),
        _RESULT,
        (
            PlannedCall("calculator/power", {"base": "=b", "exponent": 3}),
            sum_call("subtract", "$n1.result", "=c"),
        ),
    ),
    StreamFamily(
        "parts_times",
        "Divide {c} by {b} and multiply by {n}",
        _amounts,
        number_of(lambda v: v["c"] / v["b"] * v["n"]),
        _RESULT,
        (sum_call("divide", "=c", "=b"), sum_call("multiply", "$n1.result", "=n")),
    ),
    StreamFamily(
        "km_more",
        "Convert {b} miles to km and add {n}",
        _amounts,
        number_of(lambda v: v["b"] * 1.609344 + v["n"]),
        _RESULT,
        (unit_call("length", "miles", "km", "=b"), sum_call("add", "$n1.output_value", "=n")),
    ),
)

SHOWN_FAMILIES: tuple[StreamFamily, ...] = (
    StreamFamily(
        "change",
        "Somebody buys {n} pens at {b} euros each and pays with {c} euros. How much comes back?",
        _amounts,
        number_of(lambda v: v["c"] - v["n"] * v["b"]),
        _RESULT,
        (sum_call("multiply", "=n", "=b"), sum_call("subtract", "=c", "$n1.result")),
    ),
    StreamFamily(
        "bill",
        "Dinner costs {c} euros and the tip is {b} euros. What does each of {n} friends pay?",
        _amounts,
        number_of(lambda v: (v["c"] + v["b"]) / v["n"]),
        _RESULT,
        (sum_call("add", "=c", "=b"), sum_call("divide", "$n1.result", "=n")),
    ),
    StreamFamily(
        "trips",
        "A trip is {b} miles. How many km are {n} such trips?",
        _amounts,
        number_of(lambda v: v["b"] * 1.609344 * v["n"]),
        _RESULT,
        (unit_call("length", "miles", "km", "=b"), sum_call("multiply", "$n1.output_value", "=n")),
    ),
    StreamFamily(
        "oven",
        "A recipe says {b} degrees celsius and the oven shows {c} fahrenheit. How many fahrenheit is it off?",
        _amounts,
        number_of(lambda v: v["c"] - (v["b"] * 1.8 + 32)),
        _RESULT,
        (
            unit_call("temperature", "celsius", "fahrenheit", "=b"),
            sum_call("subtract", "=c", "$n1.output_value"),
        ),
    ),
    StreamFamily(
        "body_mass",
        "Somebody weighs {w} kg and is {h} m tall. What is their body mass index?",
        _person,
        number_of(lambda v: v["w"] / v["h"] ** 2),
        _RESULT,
        (
            PlannedCall("calculator/power", {"base": "=h", "exponent": 2}),
            sum_call("divide", "=w", "$n1.result"),
        ),
    ),
    StreamFamily(
        "clock",
        "A call is at {time} UTC. When is that on a clock in {zone}?",
        drawn_time,
        local_time,
        "",
        (CONVERT_TIME,),
    ),
)


def hard_stream(length: int, seed: int) -> list[StreamTask]:
    """Return a stream of harder tasks, the same for the same seed: shown, with a check, or without one."""
    dice, seen = Random(f"checks:{seed}"), Counter[str]()
    shown = {family.id for family in SHOWN_FAMILIES}
    tasks: list[StreamTask] = []
    for task in stream_of(length, seed, (*FOUND_FAMILIES, *SHOWN_FAMILIES)):
        seen[task.family.id] += 1
        is_shown = task.family.id in shown and seen[task.family.id] <= _SHOWN_TASKS
        tasks.append(replace(task, is_checked=dice.random() < _CHECKED, is_shown=is_shown))
    return tasks
