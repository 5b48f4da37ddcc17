"""From a parent and a proposal to the candidate they make: a base workflow plus ordered edits, always."""

from __future__ import annotations

from collections.abc import Sequence

from server.evolution.candidate import Candidate
from server.evolution.proposal import Proposal
from skills_store.workflow.edits import Edit, apply_edit
from skills_store.workflow.hashing import content_hash
from skills_store.workflow.model import Workflow

__all__ = ["base_candidate", "build_candidate", "edited"]


def base_candidate(base: Workflow) -> Candidate:
    """Return the base as the candidate a search begins with."""
    return Candidate(content_hash(base), base)


def build_candidate(parent: Candidate, proposal: Proposal) -> Candidate:
    """Return the child of a parent under a proposal's edits.

    Raises:
        EditRefused: one of them cannot or may not be made.
    """
    workflow = edited(parent.workflow, proposal.edits)
    return Candidate(
        id=content_hash(workflow),
        workflow=workflow,
        edits=(*parent.edits, *proposal.edits),
        last=proposal.edits,
        parent=parent.id,
        cost=parent.cost + proposal.cost,
        depth=parent.depth + 1,
    )


def edited(workflow: Workflow, edits: Sequence[Edit]) -> Workflow:
    """Return a workflow after edits made in order.

    Raises:
        EditRefused: one of them cannot or may not be made.
    """
    for edit in edits:
        workflow = apply_edit(workflow, edit)
    return workflow
