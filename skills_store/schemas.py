"""Publishes the JSON Schemas of the documents that leave the bank: `python -m skills_store.schemas`.

They are generated from the models that read and write those documents, and a test fails when the
published files are stale.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pydantic import TypeAdapter
from pydantic.json_schema import JsonSchemaMode

from skills_store.skill import Skill
from skills_store.trace import Trace
from skills_store.workflow.edits import Edit
from skills_store.workflow.faults import Fault
from skills_store.workflow.model import Workflow

__all__ = ["published_schemas", "write_schemas"]

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_MODE: JsonSchemaMode = "validation"


def published_schemas() -> dict[str, str]:
    """Return the text of every published schema by file name."""
    adapters: dict[str, TypeAdapter[object]] = {
        "workflow": TypeAdapter(Workflow),
        "fault": TypeAdapter(Fault),
        "trace": TypeAdapter(Trace),
        "skill": TypeAdapter(Skill),
        "edit": TypeAdapter(Edit),
    }
    return {f"{name}.schema.json": _text(name, adapter) for name, adapter in adapters.items()}


def write_schemas(folder: Path) -> None:
    """Write every published schema into a folder, which is made when it is missing."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in published_schemas().items():
        (folder / name).write_text(text, encoding="utf-8")


def _text(name: str, adapter: TypeAdapter[object]) -> str:
    schema = {"$schema": _DIALECT, "title": name, **adapter.json_schema(mode=_MODE)}
    return json.dumps(schema, indent=2, ensure_ascii=False, sort_keys=True) + "\n"


if __name__ == "__main__":
    write_schemas(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("docs/schemas"))
