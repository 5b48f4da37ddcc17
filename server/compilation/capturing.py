"""Reading a value from between its neighbours in a text: bounded selectors, surest first.

A number may stand in a text with thousands separators; a text is told by the label right before it,
by the label of its line, or by the sign before it alone. Which capture is taken belongs to
`derivation` and, where two runs are known, to `generalising`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import JsonValue

__all__ = ["Capture", "captures"]

_LONGEST_TEXT = 20_000
_LONGEST_LEAD = 60
_MOST_SPOTS = 3
_CAPTURABLE = re.compile(r"[\w.@:/+-]{2,120}")
_NUMBER = re.compile(r"(?<![\w.,])-?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?![\w]|,\d|\.\d)")
_LABEL = re.compile(r"[A-Za-z_][A-Za-z_ -]*[^\w\n]{1,20}$")
_LABEL_ABOVE = re.compile(r"[A-Za-z_][A-Za-z_ -]*[^\w]{1,24}$")
_LINE_LABEL = re.compile(r"\s*([A-Za-z][A-Za-z _-]*[:=])")
_SIGN = re.compile(r"[^\w\s]{1,2}$")


@dataclass(frozen=True, slots=True)
class Capture:
    """A selector expression over a text, and how unlikely it is to give the value by chance."""

    selector: str
    cost: float


@dataclass(frozen=True, slots=True)
class _Spot:
    """Where a value stands in a text, and the group that reads values of its form."""

    start: int
    group: str
    is_number: bool


def captures(value: JsonValue, text: str) -> Iterator[Capture]:
    """Yield the ways to read a value from a longer text; whether one does is for the caller to try."""
    if not len(str(value)) < len(text) <= _LONGEST_TEXT:
        return
    for spot, _ in zip(_spots(value, text), range(_MOST_SPOTS), strict=False):
        for lead, cost in _leads(text[: spot.start]):
            captured = f"regex_capture(@, '{lead}({spot.group})')"
            read = f"to_number(replace({captured}, ',', ''))" if spot.is_number else captured
            yield Capture(read, cost)


def _spots(value: JsonValue, text: str) -> Iterator[_Spot]:
    match value:
        case bool() | None:
            return
        case int() | float():
            for found in _NUMBER.finditer(text):
                if float(found[0].replace(",", "")) == value:
                    yield _Spot(found.start(), r"-?[0-9][0-9,]*\.?[0-9]*", is_number=True)
        case str() if _CAPTURABLE.fullmatch(value):
            edge = r"(?<!\d)" if value[0].isdecimal() else r"(?<!\w)"
            for found in re.finditer(rf"{edge}{re.escape(value)}(?!\w)", text):
                yield _Spot(found.start(), _form(value), is_number=False)
        case _:
            return


def _form(value: str) -> str:
    """Return a pattern for values of this form: digits and signs by their shape, else up to a break."""
    if any(letter.isalpha() for letter in value) or not any(c.isdecimal() for c in value):
        return r"[^\s,;()<>\"]+"
    return re.sub(r"\d+", "[0-9]+", re.sub(r"([^\w\s])", r"\\\1", value))


def _leads(text: str) -> Iterator[tuple[str, float]]:
    """Yield patterns of what stands before a value: on its line, or where that says nothing, above it."""
    before, last = text.rpartition("\n")[2], text[-1:]
    near = before[-_LONGEST_LEAD:]
    found: list[tuple[str, float]] = []
    if (label := _LABEL.search(near)) is not None:
        found.append((_escaped(label[0]), 1.5))
    elif (above := _LABEL_ABOVE.search(text[-_LONGEST_LEAD:])) is not None:
        found.append((_escaped(above[0]), 1.7))
    sign = _SIGN.search(near)
    if (line := _LINE_LABEL.match(before)) is not None and sign is not None:
        found.append((rf"{_escaped(line[1])}[^\n]*?{_escaped(sign[0])}", 1.6))
    if sign is not None:
        found.append((_escaped(sign[0]), 1.9))
    elif last.isalpha():
        found.append((last, 1.8))
    yield from ((lead, cost) for lead, cost in found if "'" not in lead)


def _escaped(text: str) -> str:
    return re.sub(r"\s+", r"\\s+", re.sub(r"([^\w\s])", r"\\\1", text))
