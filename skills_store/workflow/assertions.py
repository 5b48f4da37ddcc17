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

from skills_store.workflow.bounds import SelectorError
from skills_store.workflow.expression_text import render_ast
from skills_store.workflow.interpreter import Ast, is_true
from skills_store.workflow.selectors import evaluate_ast, parse_selector, selector_problem

__all__ = ["Checked", "assertion_problem", "check_assertion", "named_nodes"]

_SHOWN_LENGTH = 300
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str)


@dataclass(frozen=True, slots=True)
class Checked:
    """What an assertion came to. `found` is what stood where it did not hold, None on a pass."""

    passed: bool
    message: str
    found: JsonValue = None


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
    except SelectorError as error:
        return Checked(False, f"{expression}: {error}; output is {_shown(output)}", _bounded(output))
    if result is True:
        return Checked(True, f"{expression}: holds")
    part = ast if result is not False else _failing_part(ast, document)
    message, found = _explain(part, document, result)
    where = expression if part is ast else f"{expression}: {render_ast(part)}"
    return Checked(False, f"{where}: {message}", _bounded(found))


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
    """Return the start of a value's JSON; a large value is not written out to be cut."""
    text = ""
    try:
        for piece in _ENCODER.iterencode(value):
            text += piece
            if len(text) > _SHOWN_LENGTH:
                return f"{text[:_SHOWN_LENGTH]}…"
    except RecursionError:
        return f"{text[:_SHOWN_LENGTH]}… (nested too deeply to show)"
    return text


def _bounded(value: JsonValue) -> JsonValue:
    shown = _shown(value)
    return shown if shown.endswith(("…", ")")) and len(shown) > _SHOWN_LENGTH else value
