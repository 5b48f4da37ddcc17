"""Tests of a function as data: from JSON, or from the asserts of a test file, which is read and never run.

Paper: FlowEvo (compile): replay tests from verifier code. Differs: only asserts of the form
    `assert f(literals) == literal` say what is expected in words that can be kept; the rest is named.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from pydantic import BaseModel, ConfigDict, JsonValue, TypeAdapter, ValidationError

from skills_store.code.reading import Function, parse_code
from skills_store.errors import MalformedCode

__all__ = ["CodeExample", "parse_examples"]


@dataclass(frozen=True, slots=True)
class CodeExample:
    """Arguments by name, and what is to come out."""

    inputs: dict[str, JsonValue]
    expected: JsonValue


class _Example(BaseModel):
    model_config = ConfigDict(extra="forbid")

    inputs: dict[str, JsonValue]
    expected: JsonValue


_EXAMPLES = TypeAdapter(list[_Example])


def parse_examples(text: str, function: Function) -> tuple[CodeExample, ...]:
    """Return the tests that a file holds.

    Args:
        text: a JSON list of `{"inputs": {…}, "expected": …}`, or Python with asserts.
        function: whose tests they are.

    Raises:
        MalformedCode: it is neither, or says nothing about the function.
    """
    if text.lstrip().startswith("["):
        found = _from_json(text)
    else:
        found = [example for node in ast.walk(parse_code(text)) for example in _from_assert(node, function)]
    if not found:
        raise MalformedCode(f"there is no test: `assert {function.entry}(…) == …`, or a JSON list")
    return tuple(found)


def _from_json(text: str) -> list[CodeExample]:
    try:
        given = _EXAMPLES.validate_json(text)
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        place = "/".join(map(str, problem["loc"]))
        raise MalformedCode(f"the tests: {place}: {problem['msg']}".replace(": :", ":")) from error
    return [CodeExample(example.inputs, example.expected) for example in given]


def _from_assert(node: ast.AST, function: Function) -> list[CodeExample]:
    match node:
        case ast.Assert(
            test=ast.Compare(left=ast.Call() as call, ops=[ast.Eq() | ast.Is()], comparators=[right])
        ):
            expected = right
        case ast.Assert(test=ast.Call() as call):
            expected = ast.Constant(value=True)
        case ast.Assert(test=ast.UnaryOp(op=ast.Not(), operand=ast.Call() as call)):
            expected = ast.Constant(value=False)
        case _:
            return []
    if not isinstance(call.func, ast.Name) or call.func.id not in (function.entry, "candidate"):
        return []
    names = list(cast("Mapping[str, JsonValue]", function.takes["properties"]))
    if len(call.args) > len(names):
        raise MalformedCode(f"line {call.lineno}: {function.entry} takes {len(names)} arguments")
    given = dict(zip(names, call.args, strict=False)) | {k.arg: k.value for k in call.keywords if k.arg}
    inputs = {name: _value(value) for name, value in given.items()}
    return [CodeExample(inputs, _value(expected))]


def _value(node: ast.expr) -> JsonValue:
    try:
        return _as_json(ast.literal_eval(node))
    except (ValueError, TypeError, RecursionError) as error:
        line = getattr(node, "lineno", "?")
        raise MalformedCode(f"line {line}: {ast.unparse(node)} is no literal that JSON has") from error


def _as_json(value: object) -> JsonValue:
    match value:
        case None | bool() | int() | float() | str():
            return value
        case list() | tuple():
            return [_as_json(item) for item in cast("Sequence[object]", value)]
        case dict():
            items = cast("dict[object, object]", value).items()
            if all(isinstance(key, str) for key, _ in items):
                return {str(key): _as_json(item) for key, item in items}
            raise ValueError("a key is no text")
        case _:
            raise ValueError(f"no JSON value: {type(value).__name__}")
