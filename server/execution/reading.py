"""Reads what a planned value stands for when its node's turn comes: a value, or the fault of it."""

from __future__ import annotations

from dataclasses import dataclass

from catalog.canonical import JsonValue
from server.execution.failures import Place
from server.execution.options import MAX_FOR_EACH
from skills_store.workflow.faults import (
    DanglingReference,
    Fault,
    FaultBase,
    InvalidArgument,
    Malformed,
    OverLimit,
)
from skills_store.workflow.model import Node, Workflow
from skills_store.workflow.references import (
    ExpressionError,
    Scope,
    Unresolved,
    parse_reference,
    resolve,
)

__all__ = ["Read", "Reader"]


@dataclass(frozen=True, slots=True)
class Read:
    """A planned value with every reference in it resolved."""

    value: JsonValue


@dataclass(frozen=True, slots=True)
class Reader:
    """Resolves planned values of one node, or of the workflow's outputs when `place` is None."""

    workflow: Workflow
    scope: Scope
    place: Place | None = None

    def read(self, value: JsonValue, pointer: str) -> Read | Fault:
        """Return a value resolved, or the fault of its first part that cannot be.

        Args:
            value: as planned.
            pointer: where it stands in the document.
        """
        node, item = (self.place.node, self.place.item) if self.place is not None else (None, None)
        try:
            return Read(resolve(value, self.scope, pointer))
        except Unresolved as error:
            return DanglingReference(
                message=str(error),
                node=node,
                item=item,
                pointer=error.pointer,
                reference=error.reference,
                available=self._available(error),
            )
        except ExpressionError as error:
            return Malformed(message=str(error), node=node, item=item, pointer=error.pointer or pointer)

    def condition(self, node: Node, place: Place) -> bool | Fault:
        """Return whether a node is to run; `when` must be a boolean."""
        if node.when is None:
            return True
        read = self.read(node.when, place.at("when"))
        if isinstance(read, FaultBase):
            return read
        if isinstance(read.value, bool):
            return read.value
        return _wrong_type("when", "boolean", read.value, place)

    def items(self, node: Node, place: Place) -> list[JsonValue] | Fault | None:
        """Return what a node maps over, None when it does not; `for_each` must be a bounded list."""
        if node.for_each is None:
            return None
        read = self.read(node.for_each, place.at("for_each"))
        if isinstance(read, FaultBase):
            return read
        if not isinstance(read.value, list):
            return _wrong_type("for_each", "array", read.value, place)
        if len(read.value) > MAX_FOR_EACH:
            message = f"for_each has {len(read.value)} items, more than the {MAX_FOR_EACH} allowed"
            return OverLimit(message=message, node=node.id, pointer=place.at("for_each"))
        return read.value

    def _available(self, error: Unresolved) -> tuple[str, ...]:
        """Return what could be meant: for a node that is not in the document, all that are."""
        reference = parse_reference(error.reference)
        if reference.root == "nodes" and reference.name not in self.scope.outputs:
            own = self.place.node if self.place is not None else None
            return tuple(node.id for node in self.workflow if node.id != own)
        return tuple(error.available)


def _wrong_type(field: str, wanted: str, found: JsonValue, place: Place) -> InvalidArgument:
    return InvalidArgument(
        message=f"{field} must be a {wanted}, it is {type(found).__name__}",
        node=place.node,
        pointer=place.at(field),
        expected={"type": wanted},
        found=found,
    )
