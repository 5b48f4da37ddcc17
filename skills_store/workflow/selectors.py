"""Selectors: bounded, strict jmespath over JSON values.

The grammar is stock jmespath. A name that is not there is an error (`interpreter`), functions are
jmespath's and ours (`functions`), and no expression costs more than its meter (`bounds`).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import cast

from jmespath.exceptions import JMESPathError
from jmespath.parser import Parser
from pydantic import JsonValue

from skills_store.workflow.bounds import Meter, SelectorError, SelectorMiss
from skills_store.workflow.functions import function_problem
from skills_store.workflow.interpreter import Ast, StrictInterpreter

__all__ = [
    "EXPRESSION_LENGTH",
    "SelectorError",
    "SelectorMiss",
    "evaluate_ast",
    "evaluate_selector",
    "parse_selector",
    "selector_problem",
]

EXPRESSION_LENGTH = 2_000
"""Characters an expression may have."""

_ANNOUNCEMENT = re.compile(r"^(?:Invalid|Bad) jmespath expression: ", re.IGNORECASE)
_LITERALS = re.compile(r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|`((?:\\.|[^`\\])*)`""", re.DOTALL)


def evaluate_selector(expression: str, value: JsonValue) -> JsonValue:
    """Return what an expression selects from a value.

    Raises:
        SelectorError: it cannot be read, a name does not resolve, types cannot be compared, or it
            costs too much. The message says what is there.
    """
    return evaluate_ast(parse_selector(expression), value)


def evaluate_ast(ast: Ast, value: JsonValue, *, forgiving: bool = True) -> JsonValue:
    """Return the value of a parsed expression.

    Args:
        ast: from `parse_selector`, or a part of one.
        value: what it is evaluated on.
        forgiving: see `StrictInterpreter`.

    Raises:
        SelectorError: as in `evaluate_selector`.
    """
    meter = Meter()
    try:
        result = cast("JsonValue", StrictInterpreter(meter, forgiving=forgiving).visit(ast, value))
    except SelectorError:
        raise
    except RecursionError as error:
        raise SelectorError("the expression or its value is nested too deeply") from error
    except (ValueError, TypeError, ArithmeticError, LookupError, AttributeError) as error:
        raise SelectorError(_first_line(error)) from error
    meter.weigh(result)
    return result


@lru_cache(maxsize=1_024)
def parse_selector(expression: str) -> Ast:
    """Return the syntax tree of an expression; it is shared and must not be changed.

    Raises:
        SelectorError: it is malformed, too long, or calls an unknown function.
    """
    if len(expression) > EXPRESSION_LENGTH:
        raise SelectorError(f"an expression of {len(expression)} characters; at most {EXPRESSION_LENGTH}")
    for literal in _LITERALS.finditer(expression):
        if literal[1] is not None:
            _check_literal(literal[1].replace("\\`", "`"))
    try:
        ast = cast("Ast", Parser().parse(expression).parsed)
        problems = [problem for call in _calls(ast) if (problem := function_problem(*call))]
    except JMESPathError as error:
        raise SelectorError(f"not jmespath: {_first_line(error)}: {expression}") from error
    except RecursionError as error:
        raise SelectorError("the expression is nested too deeply") from error
    if problems:
        raise SelectorError(problems[0])
    return ast


def selector_problem(expression: str) -> str | None:
    """Return why an expression cannot be read, or None."""
    try:
        parse_selector(expression)
    except SelectorError as error:
        return str(error)
    return None


def _check_literal(text: str) -> None:
    try:
        finite = all(map(math.isfinite, _numbers(json.loads(text))))
    except (ValueError, RecursionError) as error:
        message = f"`{text[:60]}` is no JSON: a text literal is '…' or `\"…\"`"
        raise SelectorError(message) from error
    if not finite:
        raise SelectorError(f"`{text[:60]}` is no finite JSON")


def _numbers(value: object) -> Iterator[float]:
    match value:
        case float():
            yield value
        case list():
            for item in cast("list[object]", value):
                yield from _numbers(item)
        case dict():
            for item in cast("dict[str, object]", value).values():
                yield from _numbers(item)
        case _:
            return


def _calls(ast: Ast) -> Iterator[tuple[str, int]]:
    if ast["type"] == "function_expression":
        yield ast["value"], len(ast["children"])
    for child in ast["children"]:
        if isinstance(child, dict):
            yield from _calls(cast("Ast", child))


def _first_line(error: Exception) -> str:
    line = str(error).partition("\n")[0].rstrip(":")
    return _ANNOUNCEMENT.sub("", line) or type(error).__name__
