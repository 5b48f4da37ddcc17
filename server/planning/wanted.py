"""Which outputs a caller will look at: the names its checks read, never what they compare with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from server.verification import Checks
from skills_store.workflow.bounds import SelectorError
from skills_store.workflow.interpreter import Ast
from skills_store.workflow.selectors import parse_selector

__all__ = ["wanted_outputs"]

_PATHS = frozenset(
    {"subexpression", "index_expression", "projection", "filter_projection", "value_projection", "flatten"}
)


def wanted_outputs(checks: Checks) -> tuple[str, ...]:
    """Return the output names that assertions read as `output.NAME` and that a schema declares."""
    names: list[str] = []
    for expression in checks.assertions:
        try:
            names.extend(_output_names(parse_selector(expression)))
        except SelectorError:
            continue
    properties = checks.schema.get("properties") if checks.schema else None
    names.extend(properties if isinstance(properties, dict) else ())
    return tuple(dict.fromkeys(names))


def _output_names(ast: Ast) -> Iterator[str]:
    children = [cast("Ast", child) for child in ast["children"] if isinstance(child, dict)]
    if ast["type"] == "subexpression" and len(children) > 1:
        first, second = children[0], _first_read(children[1])
        if first["type"] == second["type"] == "field" and first["value"] == "output":
            yield str(second["value"])
    for child in children:
        yield from _output_names(child)


def _first_read(ast: Ast) -> Ast:
    """Return what a path reads first: of `digests[0].text` and `digests[*]` the field `digests`."""
    while ast["type"] in _PATHS and ast["children"]:
        ast = cast("Ast", ast["children"][0])
    return ast
