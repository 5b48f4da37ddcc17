"""How the answers of a call that runs over the items of a list are read."""

from __future__ import annotations

import json

from pydantic import JsonValue

from skills_store.workflow.references import pointer_parts

__all__ = ["read_of_each"]


def read_of_each(node: str, pointer: str) -> JsonValue:
    """Return what reads a place of each answer of a mapped node."""
    if not pointer:
        return f"$nodes.{node}.output"
    path = "".join(f"[{p}]" if p.isdecimal() else f".{json.dumps(p)}" for p in pointer_parts(pointer))
    return {"context": f"$nodes.{node}.output", "selector": f"[*]{path}", "type": "jmespath"}
