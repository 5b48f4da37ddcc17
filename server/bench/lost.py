"""Which values a damage takes out of a case for good: those that are said nowhere any more."""

from __future__ import annotations

import json
from collections.abc import Iterator

from pydantic import JsonValue

from catalog.tools import Snapshot
from server.provisioning.task_file import BenchTask
from skills_store.workflow.model import Workflow
from skills_store.workflow.references import is_selector

__all__ = ["lost_values"]


def lost_values(task: BenchTask, broken: Workflow, snapshot: Snapshot) -> tuple[str, ...]:
    """Return literals of the reference that nothing a repair sees says any more, sorted.

    A repair sees the task's words, the inputs, the broken workflow, and the schemas of the tools.
    """
    kept = set(_literals(broken))
    gone = [value for value in dict.fromkeys(_literals(task.reference)) if value not in kept]
    said = _said(task, broken, snapshot)
    return tuple(sorted(value for value in gone if value.casefold() not in said))


def _said(task: BenchTask, broken: Workflow, snapshot: Snapshot) -> str:
    schemas = [tool.input_schema for tool in snapshot if tool.id.server in task.servers]
    seen = [task.task, task.inputs, broken.to_json(), schemas]
    return "\n".join(json.dumps(part, ensure_ascii=False) for part in seen).casefold()


def _literals(workflow: Workflow) -> Iterator[str]:
    for node in workflow.nodes:
        for value in (node.for_each, node.when, dict(node.arguments)):
            yield from _leaves(value)
    yield from _leaves(dict(workflow.outputs))


def _leaves(value: JsonValue) -> Iterator[str]:
    match value:
        case str():
            if not value.startswith("$"):
                yield value
        case dict() if is_selector(value):
            yield str(value["selector"])
        case dict():
            for item in value.values():
                yield from _leaves(item)
        case list():
            for item in value:
                yield from _leaves(item)
        case None:
            return
        case _:
            yield json.dumps(value)
