"""Checks `expect`: the postconditions a workflow states about its nodes and about itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from catalog.canonical import JsonValue
from skills_store.workflow.assertions import check_assertion
from skills_store.workflow.faults import PostconditionFailed

__all__ = ["Reached", "check_expectation", "check_expectations"]


@dataclass(frozen=True, slots=True)
class Reached:
    """What assertions may read: an output, the workflow's inputs, outputs of finished nodes by id."""

    output: JsonValue
    inputs: Mapping[str, JsonValue]
    nodes: Mapping[str, JsonValue]


def check_expectation(
    expression: str, reached: Reached, pointer: str, node: str | None = None
) -> PostconditionFailed | None:
    """Return the fault of an expectation that does not hold.

    Args:
        expression: the assertion as the document states it.
        reached: what it is about.
        pointer: where it stands in the document.
        node: whose it is, None for the workflow's.
    """
    checked = check_assertion(expression, output=reached.output, inputs=reached.inputs, nodes=reached.nodes)
    if checked.passed:
        return None
    return PostconditionFailed(message=checked.message, node=node, pointer=pointer, found=checked.found)


def check_expectations(
    expressions: Sequence[str], reached: Reached, pointer: str, node: str | None = None
) -> list[PostconditionFailed]:
    """Return a fault for each expectation that does not hold; `pointer` is that of their list."""
    checked = (
        check_expectation(expression, reached, f"{pointer}/{position}", node)
        for position, expression in enumerate(expressions)
    )
    return [fault for fault in checked if fault is not None]
