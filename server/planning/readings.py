"""How an answer is read where something is wanted: which key, and how text and lists are taken apart."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import JsonValue

from catalog.schema import is_valid, json_type, types
from catalog.similarity import words
from catalog.tools import JsonSchema, Tool
from server.planning.forms import form_named, is_written, parts_written
from server.planning.leaves import Leaf, output_leaves
from server.planning.likeness import GENERIC_KEYS
from server.planning.literals import mentions
from skills_store.workflow.references import Reference, pointer_parts

__all__ = ["Answered", "Wanted", "reading_of", "taken_apart"]

_NUMERIC = frozenset({"number", "integer"})
_ECHOES = ("input", "from", "original", "source", "resolved")
_KEYED = re.compile(r"\b([A-Za-z_][\w ]{0,30}?)\s*[=:]\s*-?[0-9]")
_FEW = 12


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be read: its schema, empty when unknown, the words beside it, and the task."""

    schema: JsonSchema
    hint: str
    task: str
    which: int = 0
    """Which of several numbers in one text, in the order the task says them."""

    @property
    def form(self) -> str | None:
        """The written form that the schema of a text names, None where it names none."""
        return form_named(str(self.schema)) if "string" in types(self.schema) else None

    def suits(self, value: JsonValue) -> bool:
        """Return whether a value is one that the schema takes, in the form it names."""
        is_fit = is_valid(self.schema, value)
        return is_fit and (self.form is None or not isinstance(value, str) or is_written(value, self.form))


@dataclass(frozen=True, slots=True)
class Answered:
    """What is known of the answers of a node."""

    tool: Tool
    answer: JsonValue = None
    """One that its tool was seen to give; None: none yet."""
    is_alike: bool = True
    """Whether that was the answer to such a call; else only its keys say something."""
    mapped: bool = False
    """Whether the node answers with a list, one answer for each element."""

    @property
    def leaves(self) -> list[Leaf]:
        """The places that can be read."""
        seen = self.answer is not None
        found = output_leaves(self.answer, self.tool.output_schema, seen=seen)
        if not seen or self.is_alike:
            return found
        return [Leaf(leaf.pointer, leaf.key, frozenset()) for leaf in found if leaf.pointer.count("/") == 1]


def reading_of(source: Reference, answered: Answered, wanted: Wanted) -> JsonValue:
    """Return the reference or selector that reads what is wanted of the output `source` of a node."""
    found = sorted(_ranked(answered, wanted), key=lambda pair: -pair[0])
    if not found:
        return str(source)
    leaf = found[0][1]
    if answered.mapped:
        key = leaf.pointer.strip("/")
        selector = f"[].{key}" if re.fullmatch(r"[A-Za-z_]\w*", key) else "[]"
        return {"context": str(source), "selector": selector, "type": "jmespath"}
    read = str(Reference("nodes", source.name, leaf.pointer))
    if leaf.seen and not wanted.suits(leaf.value):
        if is_valid(wanted.schema, [leaf.value]):
            return [read]
        selectors = list(taken_apart(leaf.value, wanted))
        if selectors:
            selector = selectors[min(wanted.which, len(selectors) - 1)]
            return {"context": read, "selector": selector, "type": "jmespath"}
    return read


def _ranked(answered: Answered, wanted: Wanted) -> Iterator[tuple[float, Leaf]]:
    hinted = set(words(wanted.hint))
    for place, leaf in enumerate(answered.leaves):
        if not leaf.key and leaf.types & {"object"}:
            continue
        parts = set(words(leaf.key))
        score = len(parts & GENERIC_KEYS) / max(1, len(parts))
        score += 1.2 * len(parts & hinted) / max(1, len(parts))
        score -= 1.5 if any(p.lower().startswith(_ECHOES) for p in pointer_parts(leaf.pointer)) else 0.0
        score -= 1.2 if re.search(r"/\d+(?:/|$)", leaf.pointer) else 0.0
        score -= 0.01 * place + (0.5 if leaf.types & {"object"} else 0.0)
        yield score + (0.0 if answered.mapped else _fitness(leaf, wanted)), leaf


def _fitness(leaf: Leaf, wanted: Wanted) -> float:
    """Return how well a place fits the schema: as it is, wrapped in a list, or taken apart."""
    if not wanted.schema or not leaf.seen:
        kinds = types(wanted.schema)
        return 1.5 if not kinds or leaf.types & (kinds | (_NUMERIC if kinds & _NUMERIC else kinds)) else 0.0
    if wanted.suits(leaf.value):
        return 2.0
    if is_valid(wanted.schema, [leaf.value]) and isinstance(leaf.value, list):
        return 1.8
    return 1.0 if next(taken_apart(leaf.value, wanted), None) else -1.0


def taken_apart(value: JsonValue, wanted: Wanted) -> Iterator[str]:
    """Yield selectors that take what is wanted out of a seen text or list, the likeliest first."""
    kinds = types(wanted.schema)
    if isinstance(value, str):
        yield from _of_text(value, wanted, kinds)
    elif isinstance(value, list) and value and all(isinstance(row, list) for row in value):
        if "array" in kinds:
            yield "[*][0]"
        elif kinds <= _NUMERIC:
            yield "sum([*][0])"
    elif isinstance(value, list) and kinds <= _NUMERIC and {json_type(x) for x in value} <= _NUMERIC:
        yield "sum(@)"


def _of_text(text: str, wanted: Wanted, kinds: frozenset[str]) -> Iterator[str]:
    if kinds and kinds <= _NUMERIC:
        keys = [key for key in dict.fromkeys(_KEYED.findall(text)) if mentions(wanted.task, key)][:_FEW]
        hinted = [key for key in keys if set(words(key)) & set(words(wanted.hint))]
        keys.sort(key=wanted.task.find)
        for key in dict.fromkeys([*hinted, *keys]):
            yield f"to_number(regex_capture(@, '{re.escape(key)}\\s*[=:]\\s*(-?[0-9.]+)'))"
        if len(re.findall(r"\d+(?:\.\d+)?", text)) == 1:
            yield "to_number(regex_capture(@, '([0-9]+(?:\\.[0-9]+)?)'))"
    elif wanted.form and (pattern := parts_written(text, wanted.form)):
        yield f"regex_capture(@, '{pattern}')"
