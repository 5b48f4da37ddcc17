"""How large a workflow document may be, and whether it is finite JSON at all."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import JsonValue

from skills_store.workflow.faults import Fault, Malformed, OverLimit
from skills_store.workflow.model import Workflow, json_pointer
from skills_store.workflow.scan import node_values

__all__ = ["Limits", "check_limits"]


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of a workflow and its run."""

    max_nodes: int = 100
    max_depth: int = 64
    """Containers inside containers, in arguments, outputs and the inputs' schema."""
    max_for_each: int = 100
    """Items of a mapped node; kept by the execution."""
    max_bytes: int = 1_000_000
    """Of the document as compact JSON."""


def check_limits(workflow: Workflow, limits: Limits) -> list[Fault]:
    """Return what is too much, and every number that is not finite. Never raises.

    A document that passes can be walked recursively.
    """
    faults: list[Fault] = []
    for pointer, value in _values(workflow):
        faults.extend(_check_value(value, pointer, limits.max_depth))
    if faults:
        return faults
    size = len(
        json.dumps(workflow.to_json(), ensure_ascii=False, separators=(",", ":")).encode(errors="replace")
    )
    if size > limits.max_bytes:
        message = f"the document has {size} bytes; at most {limits.max_bytes}"
        faults.append(OverLimit(message=message))
    if len(workflow.nodes) > limits.max_nodes:
        message = f"{len(workflow.nodes)} nodes; at most {limits.max_nodes}"
        faults.append(OverLimit(message=message, pointer="/nodes"))
    return faults


def _values(workflow: Workflow) -> Iterator[tuple[str, JsonValue]]:
    yield "/inputs", workflow.inputs
    for index, node in enumerate(workflow.nodes):
        for name, value in node_values(node):
            yield f"/nodes/{index}/{name}", value
    yield "/outputs", workflow.outputs


def _check_value(value: JsonValue, pointer: str, max_depth: int) -> Iterator[Fault]:
    waiting: list[tuple[JsonValue, str, int]] = [(value, pointer, 0)]
    while waiting:
        part, place, depth = waiting.pop()
        match part:
            case float() if not math.isfinite(part):
                yield Malformed(message=f"{part} is no JSON number", pointer=place)
            case dict() | list() if depth >= max_depth:
                yield OverLimit(message=f"nested more than {max_depth} deep", pointer=place)
            case dict():
                waiting.extend((item, place + json_pointer(key), depth + 1) for key, item in part.items())
            case list():
                waiting.extend((item, f"{place}/{index}", depth + 1) for index, item in enumerate(part))
            case _:
                pass
