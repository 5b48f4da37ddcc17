"""A parsed expression as text again, for messages about a part of it."""

from __future__ import annotations

import json
import re
from typing import cast

from skills_store.workflow.interpreter import Ast

__all__ = ["render_ast"]

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_COMPARATORS = {"eq": "==", "ne": "!=", "lt": "<", "lte": "<=", "gt": ">", "gte": ">="}
_LOOSE = frozenset({"or_expression", "and_expression", "pipe", "comparator"})


def render_ast(ast: Ast, *, literals: bool = True) -> str:
    """Return jmespath text that parses to the same tree, or to one that means the same.

    Args:
        ast: from `parse_selector`, or a part of one.
        literals: whether literals are shown; `…` stands for them otherwise.
    """
    return _render(ast if literals else _blinded(ast))


def _blinded(ast: Ast) -> Ast:
    if ast["type"] == "literal":
        return {**ast, "type": "hidden"}
    children = [
        _blinded(cast("Ast", child)) if isinstance(child, dict) else child for child in ast["children"]
    ]
    return {**ast, "children": children}


def _render(ast: Ast) -> str:
    children: list[Ast] = ast["children"]
    match ast["type"]:
        case "field" | "literal" | "hidden" | "index" | "slice" | "current" | "identity":
            return _leaf(ast)
        case "subexpression" | "index_expression":
            return "".join(_joined(child, first=n == 0) for n, child in enumerate(children))
        case "projection":
            opened = "" if children[0]["type"] == "flatten" or _ends_in_slice(children[0]) else "[*]"
            return f"{_render(children[0])}{opened}{_joined(children[1])}"
        case "value_projection":
            base = _render(children[0])
            return f"{base}{'.' if base else ''}*{_joined(children[1])}"
        case "filter_projection":
            return f"{_render(children[0])}[?{_render(children[2])}]{_joined(children[1])}"
        case "flatten":
            return f"{_render(children[0])}[]"
        case "multi_select_list":
            return f"[{', '.join(map(_render, children))}]"
        case "multi_select_dict":
            return f"{{{', '.join(map(_render, children))}}}"
        case "key_val_pair":
            return f"{_name(ast['value'])}: {_render(children[0])}"
        case "function_expression":
            return f"{ast['value']}({', '.join(map(_render, children))})"
        case _:
            return _operation(ast)


def _operation(ast: Ast) -> str:
    operands = [f"({_render(c)})" if c["type"] in _LOOSE else _render(c) for c in ast["children"]]
    match ast["type"]:
        case "comparator":
            return f"{operands[0]} {_COMPARATORS[ast['value']]} {operands[1]}"
        case "and_expression":
            return " && ".join(operands)
        case "or_expression":
            return " || ".join(operands)
        case "pipe":
            return " | ".join(operands)
        case "not_expression":
            return f"!{operands[0]}"
        case "expref":
            return f"&{operands[0]}"
        case unknown:
            raise ValueError(f"no jmespath node is a {unknown}")


def _leaf(ast: Ast) -> str:
    match ast["type"]:
        case "field":
            return _name(ast["value"])
        case "literal":
            return _literal(ast["value"])
        case "hidden":
            return "…"
        case "index":
            return f"[{ast['value']}]"
        case "slice":
            parts: list[int | None] = ast["children"]
            return f"[{':'.join('' if part is None else str(part) for part in parts)}]"
        case "current":
            return "@"
        case _:
            return ""


def _literal(value: object) -> str:
    if isinstance(value, str) and "\\" not in value:
        return "'" + value.replace("'", "\\'") + "'"
    return "`" + json.dumps(value, ensure_ascii=False).replace("`", "\\`") + "`"


def _name(text: str) -> str:
    return text if _NAME.fullmatch(text) else json.dumps(text, ensure_ascii=False)


def _joined(ast: Ast, *, first: bool = False) -> str:
    text = _render(ast)
    bracketed = ast["type"] in ("index", "slice") or (
        text.startswith("[") and ast["type"] != "multi_select_list"
    )
    return text if first or not text or bracketed else f".{text}"


def _ends_in_slice(ast: Ast) -> bool:
    return ast["type"] == "index_expression" and ast["children"][-1]["type"] == "slice"
