"""What edits bring that was not wrong before: the static check of a child against its parent's.

An argument that a tool's schema does not declare is such a fault, also of a schema that is merely left
open: a policy flag of the search, or a name that a model made up, would go out with the call unseen.
"""

from __future__ import annotations

from collections.abc import Mapping

from catalog.tools import Snapshot
from skills_store.skill import Signature
from skills_store.workflow.check import check_workflow
from skills_store.workflow.faults import Fault, UnexpectedArgument
from skills_store.workflow.model import Workflow

__all__ = ["brought_faults", "undeclared_arguments"]


def brought_faults(
    before: Workflow,
    after: Workflow,
    snapshot: Snapshot,
    skills: Mapping[str, Signature] | None = None,
) -> list[Fault]:
    """Return the static faults of a child that its parent does not have."""
    old = {_identity(fault) for fault in check_workflow(before, snapshot, skills=skills)}
    return [f for f in check_workflow(after, snapshot, skills=skills) if _identity(f) not in old]


def undeclared_arguments(
    before: Workflow,
    after: Workflow,
    snapshot: Snapshot,
    skills: Mapping[str, Signature] | None = None,
) -> list[Fault]:
    """Return a fault for each argument that a child gives and its tool does not declare, new ones only."""
    found = brought_faults(before, after, snapshot, skills)
    return [fault for fault in found if isinstance(fault, UnexpectedArgument)]


def _identity(fault: Fault) -> tuple[str, str | None, str]:
    return fault.kind, fault.node, fault.message
