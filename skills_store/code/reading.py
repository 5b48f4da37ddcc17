"""The signature of a Python function from its syntax tree: input and output as JSON Schema.

Paper: FlowEvo (compile of code): entry is the first function, signature from the syntax tree.
Differs: the entry is the last public function unless named, since helpers come first; annotations
    become JSON Schema, and one that has no such meaning is an error instead of `Any`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from catalog.canonical import JsonValue
from catalog.tools import JsonSchema
from skills_store.errors import MalformedCode

__all__ = ["MAX_SOURCE_BYTES", "Function", "parse_code", "read_function"]

MAX_SOURCE_BYTES = 64_000
_SCALARS: dict[str, JsonSchema] = {
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "str": {"type": "string"},
    "bool": {"type": "boolean"},
    "None": {"type": "null"},
    "list": {"type": "array"},
    "List": {"type": "array"},
    "tuple": {"type": "array"},
    "Sequence": {"type": "array"},
    "dict": {"type": "object"},
    "Dict": {"type": "object"},
    "Mapping": {"type": "object"},
}
_LISTS = frozenset({"list", "List", "Sequence", "Iterable", "tuple", "Tuple"})
_OBJECTS = frozenset({"dict", "Dict", "Mapping"})


@dataclass(frozen=True, slots=True)
class Function:
    """What a function's own text says of it."""

    entry: str
    takes: JsonSchema
    """Of its parameters as an object, closed."""
    gives: JsonSchema
    """Of what it returns."""
    says: str
    """First paragraph of its docstring, empty when it has none."""


def parse_code(source: str) -> ast.Module:
    """Return the syntax tree of a source text.

    Raises:
        MalformedCode: it is too long, or no Python.
    """
    if len(source.encode(errors="replace")) > MAX_SOURCE_BYTES:
        raise MalformedCode(f"the code has more than {MAX_SOURCE_BYTES} bytes")
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None)
        raise MalformedCode(f"{f'line {line}: ' if line else ''}no Python: {error}") from error


def read_function(source: str, entry: str | None = None) -> Function:
    """Return the signature of one function of a source text.

    Args:
        source: a module's text.
        entry: name of the function; None: the last one that is not private.

    Raises:
        MalformedCode: there is no such function, or a part of it has no JSON Schema.
    """
    tree = parse_code(source)
    found = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    public = [name for name in found if not name.startswith("_")]
    name = entry or (public[-1] if public else None)
    if name is None or name not in found:
        there = ", ".join(found) or "none"
        raise MalformedCode(
            f"there is no function {entry or ''}".strip() + f" at the top level; there: {there}"
        )
    node = found[name]
    if node.returns is None:
        raise MalformedCode(f"line {node.lineno}: say what {name} returns: `-> int`")
    said = (ast.get_docstring(node) or "").split("\n\n")[0]
    return Function(name, _takes(node), _schema(node.returns), " ".join(said.split()))


def _takes(node: ast.FunctionDef) -> JsonSchema:
    properties: dict[str, JsonValue] = {}
    required: list[JsonValue] = []
    for argument, default in _parameters(node):
        if argument.annotation is None:
            raise MalformedCode(f"line {argument.lineno}: annotate {argument.arg}: `{argument.arg}: int`")
        schema = _schema(argument.annotation)
        if default is None:
            required.append(argument.arg)
        else:
            schema = {**schema, "default": _literal(default)}
        properties[argument.arg] = schema
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _parameters(node: ast.FunctionDef) -> Iterator[tuple[ast.arg, ast.expr | None]]:
    """Yield each parameter with its default, None where it has none."""
    taken = node.args
    if taken.vararg or taken.kwarg or taken.posonlyargs:
        raise MalformedCode(f"line {node.lineno}: {node.name} takes *args, **kwargs or positional-only ones")
    first_default = len(taken.args) - len(taken.defaults)
    for place, argument in enumerate(taken.args):
        yield argument, taken.defaults[place - first_default] if place >= first_default else None
    yield from zip(taken.kwonlyargs, taken.kw_defaults, strict=True)


def _literal(node: ast.expr) -> JsonValue:
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError) as error:
        raise MalformedCode(f"line {node.lineno}: a default is a literal") from error
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise MalformedCode(f"line {node.lineno}: a default is a number, a text, a boolean or None")


def _schema(node: ast.expr) -> JsonSchema:
    match node:
        case ast.Name(id=name) if name in _SCALARS:
            return dict(_SCALARS[name])
        case ast.Name(id="Any" | "object"):
            return {}
        case ast.Constant(value=None):
            return {"type": "null"}
        case ast.Constant(value=str(text)):
            return _schema(ast.parse(text, mode="eval").body)
        case ast.BinOp(op=ast.BitOr()):
            return _either([node.left, node.right])
        case ast.Attribute(attr=name):
            return _schema(ast.copy_location(ast.Name(name), node))
        case ast.Subscript():
            return _generic(node)
        case _:
            raise _no_schema(node)


def _generic(node: ast.Subscript) -> JsonSchema:
    name = node.value.attr if isinstance(node.value, ast.Attribute) else getattr(node.value, "id", "")
    parts = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
    if name == "Optional":
        return _either([*parts, ast.copy_location(ast.Constant(None), node)])
    if name == "Union":
        return _either(parts)
    if name == "Literal":
        return {"enum": [_literal(part) for part in parts]}
    if name in ("tuple", "Tuple") and not (len(parts) == 2 and _is_ellipsis(parts[1])):
        items: list[JsonValue] = [_schema(part) for part in parts]
        return {"type": "array", "prefixItems": items, "minItems": len(items), "maxItems": len(items)}
    if name in _LISTS:
        return {"type": "array", "items": _schema(parts[0])}
    if name in _OBJECTS and len(parts) == 2 and getattr(parts[0], "id", "") == "str":
        return {"type": "object", "additionalProperties": _schema(parts[1])}
    raise _no_schema(node)


def _either(parts: list[ast.expr]) -> JsonSchema:
    options = [_schema(part) for part in parts]
    kinds = [option.get("type") for option in options]
    if all(set(option) == {"type"} and isinstance(option["type"], str) for option in options):
        return {"type": [*dict.fromkeys(kinds)]}
    return {"anyOf": [*options]}


def _is_ellipsis(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is ...


def _no_schema(node: ast.expr) -> MalformedCode:
    said = ast.unparse(node)
    remedy = "use int, float, str, bool, None, list, dict, Literal or a union of them"
    return MalformedCode(f"line {node.lineno}: {said} has no JSON Schema; {remedy}")
