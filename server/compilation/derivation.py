"""How a value could have come out of an earlier output: equal to a part of it, read from it, made of it.

From the surest on: a part is equal, or a column of a list is; an item of a list is found by a value
that is known anyway; a value is captured from a text (`capturing`); the value contains a part. Which
of several ways is taken, and whether any is, belongs to `linking`.

Paper: FlowEvo (compile; DESIGN §5.8). Differs: a derived value is a bounded selector, data that can
be read, never code.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from catalog.similarity import name_similarity
from server.compilation.capturing import captures
from skills_store.workflow.bounds import json_equal
from skills_store.workflow.model import json_pointer
from skills_store.workflow.references import ExpressionError, Reference, Scope, Unresolved, resolve

__all__ = ["Derivation", "Known", "derivations"]

_MOST_PARTS = 4_000
_DEEPEST = 8
_TELLING_LENGTH = 4
_TELLING_DECIMALS = 2
_TELLING_NUMBER = 1000
_WEAK = 1.0
"""Cost of a value that says little: a small number, a short word."""


@dataclass(frozen=True, slots=True)
class Known:
    """A value that is known before the node runs, and how a workflow writes it."""

    expression: JsonValue
    value: JsonValue


@dataclass(frozen=True, slots=True)
class Derivation:
    """An expression that gives the value, and how unlikely it is to do so by chance."""

    expression: JsonValue
    cost: float
    """Smaller is surer; comparable within one value only."""


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of an output. `item` is the innermost list item it stands in, None outside of lists."""

    pointer: str
    key: str
    value: JsonValue
    list_pointer: str | None = None
    item: Mapping[str, JsonValue] | None = None
    item_pointer: str = ""


def derivations(
    value: JsonValue,
    argument: str,
    outputs: Mapping[str, JsonValue],
    known: Sequence[Known] = (),
    *,
    weak: bool = False,
) -> list[Derivation]:
    """Return the ways a value follows from earlier outputs, the surest first.

    Args:
        value: a scalar, or a list, that was given to a call.
        argument: name of the argument it was given as.
        outputs: outputs of earlier nodes by id, in the order they ran.
        known: values that items of lists may be found by.
        weak: whether also a value that says little, such as a small number, is taken for an
            output's; where something else speaks for it.
    """
    if isinstance(value, list):
        return _listed(value, argument, outputs)
    found: list[Derivation] = []
    for node, output in outputs.items():
        parts = _parts(output)
        found += _equal(value, argument, node, parts, known, weak=weak)
        if weak or _is_telling(value):
            found += _captured(value, node, output, parts)
    if isinstance(value, str) and not found:
        found += _containing(value, outputs, weak=weak)
    return sorted(found, key=lambda way: way.cost)


def _listed(value: list[JsonValue], argument: str, outputs: Mapping[str, JsonValue]) -> list[Derivation]:
    """Return the ways a list of two or more is a list of an output, or one column of such a list."""
    found: list[Derivation] = []
    for node, output in outputs.items():
        for part in _parts(output) if len(value) > 1 else ():
            rows = part.value
            if not isinstance(rows, list) or len(rows) != len(value):
                continue
            reference = str(Reference("nodes", node, part.pointer))
            unlike = 1 - (name_similarity(argument, part.key) if part.key else 0.0)
            if json_equal(rows, value):
                found.append(Derivation(reference, unlike))
            found += [
                Derivation({"context": reference, "selector": column, "type": "jmespath"}, 1 + unlike)
                for column, values in _columns(rows)
                if json_equal(values, value)
            ]
    return sorted(found, key=lambda way: way.cost)


def _columns(rows: Sequence[JsonValue]) -> Iterator[tuple[str, list[JsonValue]]]:
    first = rows[0]
    if isinstance(first, dict):
        for key in first:
            values = [row[key] for row in rows if isinstance(row, dict) and key in row]
            yield f"[*].{_identifier(key)}", values
    elif isinstance(first, list):
        for at in range(len(first)):
            yield f"[*][{at}]", [row[at] for row in rows if isinstance(row, list) and at < len(row)]


def _parts(output: JsonValue) -> list[_Part]:
    walked = _walk(output, _Part("", "", output), 0)
    return [part for part, _ in zip(walked, range(_MOST_PARTS), strict=False)]


def _walk(value: JsonValue, part: _Part, depth: int) -> Iterator[_Part]:
    yield part
    if depth >= _DEEPEST:
        return
    if isinstance(value, dict):
        for name, inner in value.items():
            below = _Part(
                part.pointer + json_pointer(name),
                name,
                inner,
                part.list_pointer,
                part.item,
                part.item_pointer,
            )
            yield from _walk(inner, below, depth + 1)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            pointer = f"{part.pointer}/{index}"
            item = inner if isinstance(inner, dict) else None
            below = _Part(pointer, part.key, inner, part.pointer, item, pointer)
            yield from _walk(inner, below, depth + 1)


def _equal(
    value: JsonValue, argument: str, node: str, parts: Sequence[_Part], known: Sequence[Known], *, weak: bool
) -> Iterator[Derivation]:
    for part in parts:
        if not _same_scalar(part.value, value):
            continue
        likeness = name_similarity(argument, part.key) if part.key else 0.0
        tells = _is_telling(value) or likeness == 1
        if not tells and not weak:
            continue
        cost = 1 - likeness + (0.0 if tells else _WEAK)
        yield from _found_items(part, node, known, cost, parts[0].value)
        # An index says where a value stood that day; only a list's first item is often meant as such.
        is_indexed = part.list_pointer is not None and not part.item_pointer.endswith("/0")
        yield Derivation(str(Reference("nodes", node, part.pointer)), cost + (2.0 if is_indexed else 0.0))


def _found_items(
    part: _Part, node: str, known: Sequence[Known], cost: float, output: JsonValue
) -> Iterator[Derivation]:
    """Yield selectors of the item of a list by one of its fields that is known and that no other item has."""
    if part.item is None or part.list_pointer is None or "/" in part.pointer[len(part.item_pointer) + 1 :]:
        return
    for key, field in part.item.items():
        for one in known:
            if key == part.key or isinstance(field, bool) or not _same_scalar(field, one.value) or "'" in key:
                continue
            selector: dict[str, JsonValue] = {
                "context": str(Reference("nodes", node, part.list_pointer)),
                "selector": f"find_item(context, '{key}', sought).{_identifier(part.key)}",
                "type": "jmespath",
                "with": {"sought": one.expression},
            }
            literal: JsonValue = {**selector, "with": {"sought": {"$literal": one.value}}}
            if _gives(literal, {node: output}, part.value):
                yield Derivation(selector, cost - 0.5)


def _captured(value: JsonValue, node: str, output: JsonValue, parts: Sequence[_Part]) -> Iterator[Derivation]:
    """Yield captures of a value from a longer text."""
    for part in parts:
        if not isinstance(part.value, str):
            continue
        for capture in captures(value, part.value):
            selector: JsonValue = {
                "context": str(Reference("nodes", node, part.pointer)),
                "selector": capture.selector,
                "type": "jmespath",
            }
            if _gives(selector, {node: output}, value):
                yield Derivation(selector, capture.cost)


def _containing(value: str, outputs: Mapping[str, JsonValue], *, weak: bool) -> Iterator[Derivation]:
    """Yield the value as a template around the longest telling parts of outputs in it."""
    template, covered = value, 0
    texts = [
        (str(part.value), Reference("nodes", node, part.pointer))
        for node, output in outputs.items()
        for part in _parts(output)
        if (weak or _is_telling(part.value)) and _is_written(part.value)
    ]
    for text, reference in sorted(texts, key=lambda found: -len(found[0])):
        pattern = rf"(?<![\w.]){re.escape(text)}(?![\w.])"
        if len(text) < len(value) and re.search(pattern, template) and "{" not in text:
            template = re.sub(pattern, lambda _, made=reference: f"{{{made}}}", template)
            covered += len(text)
    if covered and _gives(template, outputs, value):
        yield Derivation(template, 2.0)


def _is_written(value: JsonValue) -> bool:
    """Return whether a value can stand inside of a text and be told there; a plain word says nothing."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return False
    text = str(value)
    return len(text) > 1 and not (text.isalpha() and text.islower())


def _gives(expression: JsonValue, outputs: Mapping[str, JsonValue], value: JsonValue) -> bool:
    """Return whether an expression really gives the value, rather than something near it."""
    try:
        return json_equal(resolve(expression, Scope(outputs=outputs)), value)
    except (Unresolved, ExpressionError):
        return False


def _same_scalar(one: JsonValue, two: JsonValue) -> bool:
    """Return whether two scalars are the same value; 12 is 12.0, as clients write it either way."""
    if isinstance(one, dict | list | bool) or one is None or one == "":
        return False
    are_numbers = isinstance(one, int | float) and isinstance(two, int | float) and not isinstance(two, bool)
    return one == two if are_numbers else type(one) is type(two) and json_equal(one, two)


def _is_telling(value: JsonValue) -> bool:
    """Return whether equality with an output is hardly chance: long text, or a number with digits."""
    match value:
        case bool() | None:
            return False
        case str():
            return len(value) >= _TELLING_LENGTH
        case int():
            return abs(value) >= _TELLING_NUMBER
        case float():
            is_long = len(repr(value).partition(".")[2]) >= _TELLING_DECIMALS
            return is_long or abs(value) >= _TELLING_NUMBER
        case _:
            return False


def _identifier(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z_]\w*", key) else json.dumps(key)
