"""Strict evaluation of a parsed jmespath expression: what is not there is an error that says what is.

Differs from stock jmespath, where a wrong name, a wrong type and a missing element are all `null`.
"""

# The interpreter's nodes are plain dicts here: the stubs give them a type nobody can import.
# pyright: reportIncompatibleMethodOverride=false

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, cast

from jmespath.visitor import Options, TreeInterpreter
from pydantic import JsonValue

from skills_store.workflow.bounds import Meter, SelectorError, SelectorMiss, json_equal, json_type
from skills_store.workflow.functions import BoundedFunctions

__all__ = ["Ast", "StrictInterpreter", "is_true"]

Ast = dict[str, Any]

_ORDERINGS: dict[str, Callable[[Any, Any], bool]] = {
    "lt": operator.lt,
    "gt": operator.gt,
    "lte": operator.le,
    "gte": operator.ge,
}


class StrictInterpreter(TreeInterpreter):
    """Evaluates one expression on one value.

    Args:
        meter: pays for the work.
        forgiving: whether a miss on the left of `||`, or in `not_null`, leaves the rest to answer.
            Without it every name the expression uses must resolve, on both sides of `||` and `&&`.
    """

    def __init__(self, meter: Meter, *, forgiving: bool = True) -> None:
        self._bounded = BoundedFunctions(meter)
        super().__init__(Options(custom_functions=self._bounded))
        self._meter = meter
        self._forgiving = forgiving

    def visit(self, node: Ast, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        self._meter.spend(1)
        return super().visit(cast("Any", node), *args, **kwargs)

    def visit_field(self, node: Ast, value: JsonValue) -> JsonValue:
        name = cast("str", node["value"])
        if not isinstance(value, dict):
            raise SelectorMiss(f"nothing at {name!r}: {_shown(value)} has no keys")
        if name not in value:
            raise SelectorMiss(f"nothing at {name!r}; keys there: {_listed(sorted(value))}")
        return value[name]

    def visit_index(self, node: Ast, value: JsonValue) -> JsonValue:
        index = cast("int", node["value"])
        items = _list(value, f"[{index}]")
        if not -len(items) <= index < len(items):
            raise SelectorMiss(f"nothing at [{index}]; the list has {len(items)} elements")
        return items[index]

    def visit_slice(self, node: Ast, value: JsonValue) -> JsonValue:
        return super().visit_slice(cast("Any", node), _list(value, "a slice"))

    def visit_comparator(self, node: Ast, value: JsonValue) -> bool:
        left, right = (self.visit(child, value) for child in node["children"])
        return self._compare(node["value"], left, right)

    def _compare(self, comparator: str, left: JsonValue, right: JsonValue) -> bool:
        left_type, right_type = json_type(left), json_type(right)
        if comparator in ("eq", "ne"):
            if left_type != right_type and "null" not in (left_type, right_type):
                raise SelectorError(f"{_shown(left)} cannot be compared with {_shown(right)}")
            self._meter.weigh_all((left, right))
            return json_equal(left, right) is (comparator == "eq")
        if left_type != right_type or left_type not in ("number", "string"):
            raise SelectorError(f"{_shown(left)} cannot be ordered against {_shown(right)}")
        return _ORDERINGS[comparator](left, right)

    def visit_function_expression(self, node: Ast, value: JsonValue) -> JsonValue:
        read = self._visit_or_null if self._forgiving and node["value"] == "not_null" else self.visit
        arguments = [read(child, value) for child in node["children"]]
        return self._bounded.call_function(node["value"], arguments)

    def _visit_or_null(self, node: Ast, value: JsonValue) -> JsonValue:
        try:
            return self.visit(node, value)
        except SelectorMiss:
            return None

    def visit_or_expression(self, node: Ast, value: JsonValue) -> JsonValue:
        first, second = node["children"]
        if not self._forgiving:
            left, right = self.visit(first, value), self.visit(second, value)
            return left if is_true(left) else right
        left = self._visit_or_null(first, value)
        return left if is_true(left) else self.visit(second, value)

    def visit_and_expression(self, node: Ast, value: JsonValue) -> JsonValue:
        if self._forgiving:
            return super().visit_and_expression(cast("Any", node), value)
        left, right = (self.visit(child, value) for child in node["children"])
        return right if is_true(left) else left

    def visit_multi_select_dict(self, node: Ast, value: JsonValue) -> JsonValue:
        return {child["value"]: self.visit(child, value) for child in node["children"]}

    def visit_multi_select_list(self, node: Ast, value: JsonValue) -> JsonValue:
        return [self.visit(child, value) for child in node["children"]]

    def visit_flatten(self, node: Ast, value: JsonValue) -> JsonValue:
        merged: list[JsonValue] = []
        for element in _list(self.visit(node["children"][0], value), "[]"):
            added = element if isinstance(element, list) else [element]
            self._meter.spend(len(added))
            merged.extend(added)
        return merged

    def visit_projection(self, node: Ast, value: JsonValue) -> JsonValue:
        base, each = node["children"]
        return self._project(_list(self.visit(base, value), "[*]"), each)

    def visit_filter_projection(self, node: Ast, value: JsonValue) -> JsonValue:
        base, each, predicate = node["children"]
        items = _list(self.visit(base, value), "[?…]")
        return self._project([item for item in items if is_true(self.visit(predicate, item))], each)

    def visit_value_projection(self, node: Ast, value: JsonValue) -> JsonValue:
        base, each = node["children"]
        found = cast("JsonValue", self.visit(base, value))
        if not isinstance(found, dict):
            raise SelectorMiss(f".* reads an object, here is {_shown(found)}")
        return self._project(list(found.values()), each)

    def _project(self, items: list[JsonValue], each: Ast) -> list[JsonValue]:
        projected = (self.visit(each, item) for item in items)
        return [result for result in projected if result is not None]


def is_true(value: JsonValue) -> bool:
    """Return whether jmespath takes a value for true: anything but null, false and the empty."""
    return value is not None and value is not False and value not in ("", [], {})


def _list(value: JsonValue, reader: str) -> list[JsonValue]:
    if not isinstance(value, list):
        raise SelectorMiss(f"{reader} reads a list, here is {_shown(value)}")
    return value


def _shown(value: JsonValue) -> str:
    kind = json_type(value)
    article = "an" if kind in ("array", "object") else "a"
    match value:
        case None:
            return "null"
        case str():
            return f"the string {value[:60]!r}"
        case bool() | int() | float():
            return f"the {kind} {str(value).lower()[:60]}"
        case dict():
            return f"{article} {kind} with keys {_listed(sorted(value), 8)}"
        case list():
            return f"{article} {kind} of {len(value)}"


def _listed(names: list[str], limit: int = 20) -> str:
    shown = ", ".join(name[:60] for name in names[:limit]) or "none"
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"
