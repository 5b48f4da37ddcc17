"""Assertions: jmespath that must be exactly true of an output, else the words for what was there.

Stricter than selectors: every name an assertion uses must resolve, also beside a `||` that holds
without it, and an answer that is merely truthy is no pass (`CONTRACTS`, Assertions).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import cast

from pydantic import JsonValue

from skills_store.workflow.bounds import SelectorError, SelectorMiss
from skills_store.workflow.expression_text import render_ast
from skills_store.workflow.interpreter import Ast, is_true
from skills_store.workflow.selectors import evaluate_ast, parse_selector, selector_problem

__all__ = ["Checked", "assertion_problem", "check_assertion", "named_nodes"]

_SHOWN_LENGTH = 300
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str)


@dataclass(frozen=True, slots=True)
class Checked:
    """What an assertion came to.

    `message` is for people. `hint` says the same to proposers of plans and edits, who never see the
    assertion's literals. `found` is what stood where it did not hold, None on a pass.
    """

    passed: bool
    message: str
    found: JsonValue = None
    hint: str = ""


def check_assertion(
    expression: str,
    *,
    output: JsonValue,
    inputs: Mapping[str, JsonValue],
    nodes: Mapping[str, JsonValue],
) -> Checked:
    """Return whether an assertion is exactly true; never raises.

    Args:
        expression: jmespath over `output`, `inputs` and `nodes`.
        output: the node's output, or the workflow's outputs.
        inputs: the workflow's inputs.
        nodes: outputs of finished nodes by id, read as `nodes.ID.output`.
    """
    document: JsonValue = {
        "output": output,
        "inputs": dict(inputs),
        "nodes": {node_id: {"output": value} for node_id, value in nodes.items()},
    }
    try:
        ast = parse_selector(expression)
        result = evaluate_ast(ast, document, forgiving=False)
        if result is True:
            return Checked(True, f"{expression}: holds")
        return _failed(expression, ast, document, result)
    except SelectorError as error:
        return Checked(
            False,
            f"{expression}: {error}; output is {_shown(output)}",
            _bounded(output),
            f"{_without_literals(expression)}: {_told(error)}; output is {_shown(output)}",
        )


def _failed(expression: str, ast: Ast, document: JsonValue, result: JsonValue) -> Checked:
    part = ast if result is not False else _failing_part(ast, document)
    message, found = _explain(part, document, result)
    where = expression if part is ast else f"{expression}: {render_ast(part)}"
    read = {render_ast(path): evaluate_ast(path, document) for path in _paths(part)}
    values = ", ".join(f"{path} is {_shown(value)}" for path, value in read.items())
    hint = f"{render_ast(part, literals=False)}: {values or 'does not hold'}"
    return Checked(False, f"{where}: {message}", _bounded(found), hint)


def _without_literals(expression: str) -> str:
    try:
        return render_ast(parse_selector(expression), literals=False)
    except SelectorError:
        return "an assertion that cannot be read"


def _told(error: SelectorError) -> str:
    """Return an error's words where they name only what is there, never what was asked for."""
    return str(error) if isinstance(error, SelectorMiss) else "cannot be evaluated"


def _paths(ast: Ast) -> Iterator[Ast]:
    """Yield the parts of an expression that only read the document, no literal among them."""
    children = [cast("Ast", child) for child in ast["children"] if isinstance(child, dict)]
    if ast["type"] in (
        "comparator",
        "and_expression",
        "or_expression",
        "not_expression",
        "function_expression",
    ):
        for child in children:
            yield from _paths(child)
    elif ast["type"] in ("pipe", "filter_projection"):
        yield from _paths(children[0])
    elif ast["type"] != "expref" and not _has_literal(ast):
        yield ast


def _has_literal(ast: Ast) -> bool:
    children = [cast("Ast", child) for child in ast["children"] if isinstance(child, dict)]
    return ast["type"] == "literal" or any(_has_literal(child) for child in children)


def assertion_problem(expression: str) -> str | None:
    """Return why an assertion cannot be read, or None."""
    return selector_problem(expression)


def named_nodes(expression: str) -> frozenset[str]:
    """Return the ids an assertion reads as `nodes.ID`; none when it cannot be read."""
    try:
        return frozenset(_node_names(parse_selector(expression)))
    except SelectorError:
        return frozenset()


def _node_names(ast: Ast) -> Iterator[str]:
    children = [cast("Ast", child) for child in ast["children"] if isinstance(child, dict)]
    if ast["type"] == "subexpression" and len(children) > 1:
        first, second = children[0], children[1]
        if first["type"] == second["type"] == "field" and first["value"] == "nodes":
            yield second["value"]
    for child in children:
        yield from _node_names(child)


def _failing_part(ast: Ast, document: JsonValue) -> Ast:
    """Return the first operand of a conjunction that does not hold, however deep."""
    while ast["type"] == "and_expression":
        left, right = ast["children"]
        ast = right if is_true(evaluate_ast(left, document)) else left
    return ast


def _explain(ast: Ast, document: JsonValue, result: JsonValue) -> tuple[str, JsonValue]:
    if result is not False or ast["type"] not in ("comparator", "function_expression"):
        return f"it is {_shown(result)}, not true", result
    sides: list[Ast] = ast["children"]
    names = ["left", "right"] if ast["type"] == "comparator" else [render_ast(side) for side in sides]
    told = [
        (name, evaluate_ast(side, document))
        for side, name in zip(sides, names, strict=True)
        if side["type"] not in ("literal", "expref")
    ]
    if not told:
        return "it is false", False
    return ", ".join(f"{name} is {_shown(value)}" for name, value in told), told[0][1]


def _shown(value: JsonValue) -> str:
    text, whole = _start(value)
    return text if whole else f"{text}…"


def _bounded(value: JsonValue) -> JsonValue:
    text, whole = _start(value)
    return value if whole else f"{text}…"


def _start(value: JsonValue) -> tuple[str, bool]:
    """Return the start of a value's JSON and whether that is all; a large value is not written out."""
    text = ""
    try:
        for piece in _ENCODER.iterencode(value):
            text += piece
            if len(text) > _SHOWN_LENGTH:
                return text[:_SHOWN_LENGTH], False
    except RecursionError:
        return text[:_SHOWN_LENGTH], False
    return text, True
