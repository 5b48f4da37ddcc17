"""References, templates and selectors: the data flow of a workflow (`CONTRACTS`, Workflow document).

A value in arguments or outputs is JSON in which some strings and objects stand for data:
whole-string references, `{$…}` placeholders inside longer strings, selector objects, and
`{"$literal": …}` quotations. Everything else is itself. Evaluating jmespath is `selectors`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from pydantic import JsonValue

from skills_store.workflow.model import json_pointer
from skills_store.workflow.selectors import SelectorError, evaluate_selector

__all__ = [
    "ExpressionError",
    "Found",
    "Reference",
    "Scope",
    "Unresolved",
    "escape_literal",
    "find_references",
    "is_selector",
    "map_references",
    "parse_reference",
    "pointer_parts",
    "resolve",
    "resolve_pointer",
]

_REFERENCE = re.compile(
    r"\$(?:inputs\.(?P<input>[A-Za-z_][\w.-]*)|nodes\.(?P<node>[a-z][a-z0-9_]*)\.output|(?P<item>item))"
    r"(?:#(?P<pointer>(?:/[^/#{}]*)*))?"
)
_PLACEHOLDER = re.compile(r"\{\{\$|\{(\$(?:inputs\.|nodes\.|item)[^{}]*)\}")
_SELECTOR_KEYS = {"context", "selector", "type"}

Root = Literal["inputs", "nodes", "item"]


class ExpressionError(ValueError):
    """A reference, template or selector that cannot be read; `pointer` is inside the value."""

    def __init__(self, message: str, pointer: str = "") -> None:
        super().__init__(message)
        self.pointer = pointer


class Unresolved(LookupError):  # noqa: N818
    """A reference whose target is not there; `available` lists what is."""

    def __init__(self, reference: str, available: list[str], pointer: str, message: str) -> None:
        super().__init__(message)
        self.reference = reference
        self.available = available
        self.pointer = pointer


@dataclass(frozen=True, slots=True)
class Reference:
    """Where a value comes from. `name` is an input or a node id, empty for `$item`."""

    root: Root
    name: str = ""
    pointer: str = ""

    def __str__(self) -> str:
        tail = f"#{self.pointer}" if self.pointer else ""
        match self.root:
            case "inputs":
                return f"$inputs.{self.name}{tail}"
            case "nodes":
                return f"$nodes.{self.name}.output{tail}"
            case "item":
                return f"$item{tail}"

    def at(self, pointer: str) -> Reference:
        """Return the same source read at another pointer."""
        return Reference(self.root, self.name, pointer)


@dataclass(frozen=True, slots=True)
class Found:
    """A reference found inside a value, and where. `whole` unless it is part of a template or selector."""

    pointer: str
    reference: Reference
    whole: bool


@dataclass(frozen=True, slots=True)
class Scope:
    """What references may read: input values, outputs of finished nodes, the mapped item."""

    inputs: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    outputs: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    item: JsonValue = None
    has_item: bool = False


def parse_reference(text: str) -> Reference:
    """Return the reference a whole string is.

    Raises:
        ExpressionError: the string is none.
    """
    match = _REFERENCE.fullmatch(text)
    if match is None:
        raise ExpressionError(
            f"{text!r} is no reference: expected $inputs.NAME, $nodes.ID.output or $item, each with an"
            " optional #/json/pointer ($$ at the start escapes one $)"
        )
    pointer = match["pointer"] or ""
    if match["item"]:
        return Reference("item", "", pointer)
    if match["node"]:
        return Reference("nodes", match["node"], pointer)
    return Reference("inputs", match["input"], pointer)


def is_selector(value: JsonValue) -> bool:
    """Return whether an object is a selector: exactly context, selector, type, optionally with."""
    return isinstance(value, dict) and set(value) - {"with"} == _SELECTOR_KEYS and value["type"] == "jmespath"


def escape_literal(value: JsonValue) -> JsonValue:
    """Return the value written so that it stands for itself, whatever it looks like."""
    match value:
        case str():
            escaped = "$" + value if value.startswith("$") else value
            return escaped.replace("{$", "{{$")
        case dict() if is_selector(value) or set(value) == {"$literal"}:
            return {"$literal": value}
        case dict():
            return {key: escape_literal(item) for key, item in value.items()}
        case list():
            return [escape_literal(item) for item in value]
        case _:
            return value


def find_references(value: JsonValue, pointer: str = "") -> Iterator[Found]:
    """Yield every reference in a value with its pointer.

    Raises:
        ExpressionError: at the first part that cannot be read.
    """
    match value:
        case str():
            yield from _find_in_text(value, pointer)
        case dict() if set(value) == {"$literal"}:
            return
        case dict() if is_selector(value):
            for key in ("context", "with"):
                for found in find_references(value.get(key), f"{pointer}/{key}"):
                    yield Found(found.pointer, found.reference, whole=False)
        case dict():
            for key, item in value.items():
                yield from find_references(item, pointer + json_pointer(key))
        case list():
            for index, item in enumerate(value):
                yield from find_references(item, f"{pointer}/{index}")
        case _:
            return


def _find_in_text(text: str, pointer: str) -> Iterator[Found]:
    if text.startswith("$$"):
        text = text[2:]
    elif text.startswith("$"):
        try:
            yield Found(pointer, parse_reference(text), whole=True)
        except ExpressionError as error:
            raise ExpressionError(str(error), pointer) from None
        return
    for match in _PLACEHOLDER.finditer(text):
        if match[1] is None:
            continue
        try:
            yield Found(pointer, parse_reference(match[1]), whole=False)
        except ExpressionError as error:
            raise ExpressionError(str(error), pointer) from None


def map_references(value: JsonValue, change: Callable[[Reference], Reference]) -> JsonValue:
    """Return the value with every reference in it replaced by `change(reference)`."""
    match value:
        case str() if value.startswith("$") and not value.startswith("$$"):
            return str(change(parse_reference(value)))
        case str():
            return _PLACEHOLDER.sub(
                lambda m: m[0] if m[1] is None else "{" + str(change(parse_reference(m[1]))) + "}", value
            )
        case dict() if set(value) == {"$literal"}:
            return value
        case dict() if is_selector(value):
            return {
                key: map_references(item, change) if key in ("context", "with") else item
                for key, item in value.items()
            }
        case dict():
            return {key: map_references(item, change) for key, item in value.items()}
        case list():
            return [map_references(item, change) for item in value]
        case _:
            return value


def resolve(value: JsonValue, scope: Scope, pointer: str = "") -> JsonValue:
    """Return the value with every reference, template and selector replaced by its data.

    Args:
        value: arguments or outputs as planned.
        scope: what references may read.
        pointer: where the value stands in the document, for errors.

    Raises:
        Unresolved: a reference names something that is not there.
        ExpressionError: something cannot be read, or a selector fails.
    """
    match value:
        case str():
            return _resolve_text(value, scope, pointer)
        case dict() if set(value) == {"$literal"}:
            return value["$literal"]
        case dict() if is_selector(value):
            return _resolve_selector(value, scope, pointer)
        case dict():
            return {key: resolve(item, scope, pointer + json_pointer(key)) for key, item in value.items()}
        case list():
            return [resolve(item, scope, f"{pointer}/{i}") for i, item in enumerate(value)]
        case _:
            return value


def _resolve_text(text: str, scope: Scope, pointer: str) -> JsonValue:
    if text.startswith("$$"):
        return "$" + _fill(text[2:], scope, pointer)
    if text.startswith("$"):
        try:
            reference = parse_reference(text)
        except ExpressionError as error:
            raise ExpressionError(str(error), pointer) from None
        return _read(reference, scope, pointer)
    return _fill(text, scope, pointer)


def _fill(text: str, scope: Scope, pointer: str) -> str:
    def replacement(match: re.Match[str]) -> str:
        if match[1] is None:
            return "{$"
        value = _read(parse_reference(match[1]), scope, pointer)
        if isinstance(value, str):
            return value
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

    try:
        return _PLACEHOLDER.sub(replacement, text)
    except ExpressionError as error:
        raise ExpressionError(str(error), pointer) from None


def _resolve_selector(value: dict[str, JsonValue], scope: Scope, pointer: str) -> JsonValue:
    context = resolve(value["context"], scope, f"{pointer}/context")
    if (extra := value.get("with")) is not None:
        named = resolve(extra, scope, f"{pointer}/with")
        if not isinstance(named, dict):
            raise ExpressionError("'with' must be an object of named values", f"{pointer}/with")
        context = {"context": context, **named}
    selector = value["selector"]
    if not isinstance(selector, str):
        raise ExpressionError("'selector' must be a jmespath expression", f"{pointer}/selector")
    try:
        return evaluate_selector(selector, context)
    except SelectorError as error:
        raise ExpressionError(str(error), f"{pointer}/selector") from error


def _read(reference: Reference, scope: Scope, pointer: str) -> JsonValue:
    match reference.root:
        case "inputs":
            source, names = scope.inputs, "inputs"
        case "nodes":
            source, names = scope.outputs, "finished nodes"
        case "item":
            if not scope.has_item:
                raise Unresolved(str(reference), [], pointer, "$item stands outside of a for_each node")
            return resolve_pointer(scope.item, reference, pointer)
    if reference.name not in source:
        available = sorted(source)
        raise Unresolved(
            str(reference), available, pointer, f"{reference} is not there; {names}: {_listed(available)}"
        )
    return resolve_pointer(source[reference.name], reference, pointer)


def pointer_parts(pointer: str) -> list[str]:
    """Return the unescaped parts of an RFC 6901 pointer."""
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]


def resolve_pointer(value: JsonValue, reference: Reference, pointer: str = "") -> JsonValue:
    """Return what the reference's pointer reads in a value.

    Raises:
        Unresolved: naming the keys that are there.
    """
    for part in pointer_parts(reference.pointer):
        match value:
            case dict() if part in value:
                value = value[part]
            case list() if part.isdecimal() and int(part) < len(value):
                value = value[int(part)]
            case dict():
                raise _no_key(reference, part, sorted(value), pointer, "keys there")
            case list():
                raise _no_key(
                    reference, part, [f"0…{len(value) - 1}"] if value else [], pointer, "indices there"
                )
            case _:
                raise _no_key(reference, part, [], pointer, f"it is a {type(value).__name__}, keys")
    return value


def _no_key(reference: Reference, part: str, available: list[str], pointer: str, what: str) -> Unresolved:
    message = f"{reference}: nothing at {part!r}; {what}: {_listed(available)}"
    return Unresolved(str(reference), available, pointer, message)


def _listed(names: list[str], limit: int = 20) -> str:
    shown = ", ".join(names[:limit]) or "none"
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"
