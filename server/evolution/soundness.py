"""What edits bring that was not wrong before: the static check of a child against its parent's.

Also what no edit may bring although the static check lets it pass: an argument that a tool's schema
does not declare. An open schema takes anything, and so a policy flag of the search, or a name that a
model made up, would go out with the call unseen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from catalog.tools import JsonSchema, Snapshot
from skills_store.skill import Signature
from skills_store.workflow.check import check_workflow
from skills_store.workflow.faults import Fault, UnexpectedArgument
from skills_store.workflow.model import Node, Workflow, json_pointer

__all__ = ["brought_faults", "undeclared_arguments"]


def brought_faults(
    before: Workflow,
    after: Workflow,
    snapshot: Snapshot,
    skills: Mapping[str, Signature] | None = None,
) -> list[Fault]:
    """Return the static faults of a child that its parent does not have, undeclared arguments first."""
    old = {_identity(fault) for fault in check_workflow(before, snapshot, skills=skills)}
    new = [f for f in check_workflow(after, snapshot, skills=skills) if _identity(f) not in old]
    return [*undeclared_arguments(before, after, snapshot), *new]


def undeclared_arguments(before: Workflow, after: Workflow, snapshot: Snapshot) -> list[Fault]:
    """Return a fault for each argument that a child gives and its tool does not declare, new ones only."""
    return [fault for node in after.nodes for fault in _undeclared(before.node(node.id), node, snapshot)]


def _undeclared(old: Node | None, node: Node, snapshot: Snapshot) -> Iterator[Fault]:
    tool = snapshot.get(node.tool) if node.tool else None
    declared = _declared(tool.input_schema) if tool else None
    if declared is None:
        return
    had = old.arguments if old is not None and old.tool == node.tool else {}
    for name in node.arguments:
        if name not in declared and name not in had:
            yield UnexpectedArgument(
                message=f"{node.target} declares no argument {name!r}",
                node=node.id,
                pointer=json_pointer("nodes", node.id, "arguments", name),
                argument=name,
                allowed=declared,
            )


def _declared(schema: JsonSchema) -> tuple[str, ...] | None:
    """Return the names a schema declares; None where it says that others are welcome, or names none."""
    properties = schema.get("properties")
    if not isinstance(properties, dict) or not properties or "patternProperties" in schema:
        return None
    return tuple(properties) if schema.get("additionalProperties") in (None, False) else None


def _identity(fault: Fault) -> tuple[str, str | None, str]:
    return fault.kind, fault.node, fault.message
