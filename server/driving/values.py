"""Values between steps: references to earlier answers, previews, and where an output came from."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from pydantic import JsonValue

from skills_store.workflow.bounds import json_equal
from skills_store.workflow.model import json_pointer
from skills_store.workflow.references import (
    Reference,
    Scope,
    Unresolved,
    find_references,
    resolve,
    resolve_pointer,
)

__all__ = ["as_references", "located", "parts_of_wholes", "preview", "reads", "recalled", "resolved"]

_SHORT = re.compile(r"\$(r\d+)(#(?:/.*)?)?")
_MOST_PLACES = 5_000
_FEW = 5


def as_references(value: JsonValue) -> JsonValue:
    """Return a value with `$r1#/a` written as workflows write it, `$nodes.r1.output#/a`."""
    match value:
        case str() if match := _SHORT.fullmatch(value):
            tail = "" if match[2] in (None, "#") else match[2]
            return f"$nodes.{match[1]}.output{tail}"
        case dict():
            return {key: as_references(part) for key, part in value.items()}
        case list():
            return [as_references(part) for part in value]
        case _:
            return value


def reads(arguments: Mapping[str, JsonValue]) -> frozenset[str]:
    """Return the names of the results that arguments, in a workflow's writing, refer to."""
    found = find_references(cast("JsonValue", dict(arguments)))
    return frozenset(one.reference.name for one in found if one.reference.root == "nodes")


def parts_of_wholes(arguments: Mapping[str, JsonValue], outputs: Mapping[str, JsonValue]) -> list[str]:
    """Return references to the first parts of objects that arguments pass on whole, as models write them."""
    found = find_references(cast("JsonValue", dict(arguments)))
    whole = dict.fromkeys(one.reference.name for one in found if not one.reference.pointer)
    objects = {name: outputs.get(name) for name in whole}
    return [
        f"${name}#{json_pointer(key)}"
        for name, value in objects.items()
        if isinstance(value, dict)
        for key in list(value)[:_FEW]
    ]


def resolved(
    arguments: Mapping[str, JsonValue], inputs: Mapping[str, JsonValue], outputs: Mapping[str, JsonValue]
) -> dict[str, JsonValue]:
    """Return arguments with their references read.

    Raises:
        Unresolved: one names nothing; the message lists what there is.
        ExpressionError: one cannot be read.
    """
    return cast("dict[str, JsonValue]", resolve(dict(arguments), Scope(inputs, outputs)))


def recalled(outputs: Mapping[str, JsonValue], name: str, pointer: str) -> JsonValue:
    """Return a result, or a part of it.

    Raises:
        Unresolved: there is no such result or part.
    """
    if name not in outputs:
        message = f"there is no result {name!r}; there are {', '.join(outputs) or 'none yet'}"
        raise Unresolved(name, list(outputs), "", message)
    return resolve_pointer(outputs[name], Reference("nodes", name, pointer))


def preview(value: JsonValue, limit: int) -> str:
    """Return a value as JSON, cut with a note of what is missing where it is longer than the limit."""
    text = json.dumps(value, ensure_ascii=False)
    if len(text) <= limit:
        return text
    return f"{text[:limit]}… [{len(text)} characters in all; recall or refer to a part by pointer]"


def located(value: JsonValue, outputs: Mapping[str, JsonValue], order: Sequence[str]) -> str | None:
    """Return a reference to the newest result that is, or holds, this value; None where none does."""
    for name in reversed(order):
        for pointer, part in _places(outputs[name], ""):
            if json_equal(part, value):
                return str(Reference("nodes", name, pointer))
    return None


def _places(value: JsonValue, pointer: str) -> Iterator[tuple[str, JsonValue]]:
    waiting: list[tuple[str, JsonValue]] = [(pointer, value)]
    for _ in range(_MOST_PLACES):
        if not waiting:
            return
        at, part = waiting.pop(0)
        yield at, part
        if isinstance(part, dict):
            waiting += [(at + json_pointer(key), inner) for key, inner in part.items()]
        elif isinstance(part, list):
            waiting += [(at + json_pointer(index), inner) for index, inner in enumerate(part)]
