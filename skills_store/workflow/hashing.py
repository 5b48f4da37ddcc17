"""Identity and family of a workflow (`CONTRACTS`, Hashes).

`content_hash` tells duplicates and pins; `shape_hash` gathers the workflows that differ only in
ids, document order, input names and literal values.
"""

from __future__ import annotations

from typing import cast

from pydantic import JsonValue

from catalog.canonical import digest
from skills_store.workflow.model import Workflow
from skills_store.workflow.shape import canonical_shape

__all__ = ["content_hash", "shape_hash"]

_PROSE = frozenset({"title", "description", "examples"})
_NAMED_SCHEMAS = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
_VALUES = frozenset({"const", "default", "enum", "required", "dependentRequired"})


def content_hash(workflow: Workflow) -> str:
    """Return `sha256:…` over what the workflow does: no name, no prose.

    Raises:
        ValueError: it holds a number that is not finite.
    """
    document = workflow.to_json()
    for key in ("name", "description"):
        document.pop(key, None)
    document["inputs"] = _without_prose(workflow.inputs)
    return digest(document)


def shape_hash(workflow: Workflow) -> str:
    """Return `sha256:…` over the workflow's canonical shape; any workflow has one, even a cyclic one."""
    return digest(canonical_shape(workflow))


def _without_prose(schema: JsonValue) -> JsonValue:
    match schema:
        case dict():
            return {key: _kept(key, value) for key, value in schema.items() if key not in _PROSE}
        case list():
            return [_without_prose(item) for item in schema]
        case _:
            return schema


def _kept(keyword: str, value: JsonValue) -> JsonValue:
    if keyword in _VALUES:
        return value
    if keyword in _NAMED_SCHEMAS and isinstance(value, dict):
        return {name: _without_prose(part) for name, part in cast("dict[str, JsonValue]", value).items()}
    return _without_prose(value)
