"""A task read as the steps it orders: imperative clauses, each with its verb and what it is done to.

Pure text work over general English; which tool carries out a step is the clause planner's to say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from server.planning.units import unit_spellings

__all__ = ["VERBS", "SpokenStep", "is_pair", "spoken_steps"]

VERBS = frozenset(
    {
        "add",
        "append",
        "calculate",
        "check",
        "clear",
        "close",
        "combine",
        "compute",
        "connect",
        "convert",
        "copy",
        "count",
    }
    | {"create", "delete", "describe", "divide", "encode", "evaluate", "export", "extract", "fetch", "find"}
    | {"format", "get", "give", "hash", "import", "insert", "list", "look", "make", "move"}
    | {"multiply", "parse", "query", "raise", "read", "remove", "rename", "run", "search", "set"}
    | {"show", "size", "sort", "square", "subtract", "sum", "take", "translate", "update", "use"}
    | {"validate", "weigh", "write"}
)
"""Words that begin a clause which orders something."""
_SENTENCES = re.compile(r"[.;:?!](?:\s+|$)")
_PARTS = re.compile(r",\s+(?:and\s+)?(?:then\s+)?|\s+(?:and\s+then|and|then)\s+", re.IGNORECASE)
_LEADING = re.compile(r"^(?:please|then|and|also|first|finally|afterwards|now)\s+", re.IGNORECASE)
_UNITS = re.compile(r"(?:^|\s)from\s+(\S+)\s+to\s+(\S+?)(?=[\s,.;]|$)", re.IGNORECASE)
_ENDS = re.compile(r"(?:^|\s+)(from|to)\s+([^\s,.;]+)", re.IGNORECASE)
_TURNING = frozenset({"convert", "translate"})
"""Verbs of a clause that says from what to what something is turned."""
_OPERANDS = re.compile(r"(?:^|\s+)(to the power of|by|from|to)\s+", re.IGNORECASE)
_MEANS = re.compile(r"\s+(?:with|using|via|in order to|for)\s+.*$", re.IGNORECASE)
_PAIR = re.compile(r"^(?:the two|both|them|these two|those two)$", re.IGNORECASE)
_ALL = re.compile(r"\b(?:each|every|both|all)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class SpokenStep:
    """One thing a task says to do."""

    verb: str
    said: str
    """The whole clause."""
    operands: tuple[str, ...]
    """What it is done to, in the order a tool takes them; "" stands for what came before."""
    units: tuple[str, str] | None = None
    """From which unit to which, where the clause says so."""
    of_each: bool = False
    """Whether it is done to each of several things."""
    ends: tuple[str, str] = ("", "")
    """From what to what that is no unit, such as two time zones; "" where the clause leaves one out."""

    @property
    def noun(self) -> str:
        """What the step is about, as a later clause may name it again."""
        return " ".join(part for part in self.operands[:1] if part)


def spoken_steps(task: str) -> list[SpokenStep]:
    """Return the steps a task orders, in its order; none where it only asks or tells."""
    return [_step(verb, said) for verb, said in _clauses(task)]


def is_pair(operands: tuple[str, ...]) -> bool:
    """Return whether operands are the two things that were spoken of before."""
    return len(operands) == 2 and operands[0] == operands[1] and _PAIR.match(operands[0]) is not None


def _clauses(task: str) -> Iterator[tuple[str, str]]:
    """Yield verb and text of each imperative clause; a verb is carried on where only its object changes."""
    for sentence in _SENTENCES.split(task):
        current: list[str] = []
        for part in _PARTS.split(sentence):
            text = _LEADING.sub("", part.strip())
            first = text.split(" ", 1)[0].lower()
            if first in VERBS:
                if current:
                    yield current[0], current[1]
                current = [first, text]
            elif current and _goes_on(text, *current):
                yield current[0], current[1]
                current = [current[0], f"{current[0]} {text}"]
            elif current:
                current[1] = f"{current[1]} and {text}"
        if current:
            yield current[0], current[1]


def _units_of(text: str) -> tuple[str, str] | None:
    found = _UNITS.search(text)
    if found and unit_spellings(found[1]) and unit_spellings(found[2]):
        return found[1], found[2]
    return None


def _goes_on(text: str, verb: str, said: str) -> bool:
    """Return whether a part orders once more what the clause before it does, of something else."""
    if _units_of(text) and _units_of(said):
        return True
    return all(_ends_of(verb, text)) and any(_ends_of(verb, said))


def _ends_of(verb: str, said: str) -> tuple[str, str]:
    if verb not in _TURNING or _units_of(said):
        return "", ""
    found = {match[1].lower(): match[2] for match in _ENDS.finditer(said)}
    return found.get("from", ""), found.get("to", "")


def _step(verb: str, said: str) -> SpokenStep:
    units, ends = _units_of(said), _ends_of(verb, said)
    if re.match(r"add up\b", said, re.IGNORECASE):
        verb, said = "sum", f"sum{said[6:]}"
    rest = _MEANS.sub("", said[len(verb) :].strip())
    if units is not None:
        operands: tuple[str, ...] = (_UNITS.sub("", rest).strip(),)
    elif any(ends):
        operands = (_ENDS.sub("", rest).strip(),)
    else:
        operands = _ordered_operands(verb, rest)
    return SpokenStep(verb, said, operands, units, _ALL.search(rest) is not None, ends)


def _ordered_operands(verb: str, rest: str) -> tuple[str, ...]:
    """Return the operands as tools take them: what is divided, raised or subtracted from goes first."""
    parts = _OPERANDS.split(rest, maxsplit=1)
    if len(parts) == 3:
        one, link, other = parts[0].strip(), parts[1].lower(), parts[2].strip()
        return (other, one) if link == "from" and verb == "subtract" else (one, other)
    both = rest.split(" and ", 1)
    if len(both) == 2 and verb in ("add", "multiply", "sum", "combine"):
        return both[0].strip(), both[1].strip()
    if verb in ("add", "subtract", "multiply", "divide"):
        return (rest, rest) if _PAIR.match(rest) else ("", rest)
    of = re.match(r"^(?:the )?[\w-]+(?: [\w-]+)? of (.+)$", rest, re.IGNORECASE)
    return (of[1] if of else rest,)
