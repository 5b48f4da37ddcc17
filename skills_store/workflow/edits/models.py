"""The five typed edits as values.

Paper: EvoFlux (typed edits; facts §1.2). Differs: five edits, no validator node; an edit carries
its arguments, heals or refuses references, never touches `expect`, and has an inverse.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from catalog.canonical import digest
from catalog.tools import ToolId
from skills_store.workflow.model import Node

__all__ = [
    "Edit",
    "EditParameter",
    "EditRefused",
    "InsertNode",
    "RemoveNode",
    "Reorder",
    "SwapTool",
    "edit_identity",
]


class EditRefused(ValueError):  # noqa: N818  (what happened to the edit)
    """An edit that cannot or may not be made; the message is the reason."""


class _Edit(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    because: str = ""
    """Readable evidence that chose this edit; not part of its identity."""


class SwapTool(_Edit):
    """Call another tool in a node, with the arguments as re-mapped to its schema."""

    kind: Literal["swap_tool"] = "swap_tool"
    node: str
    tool: ToolId
    arguments: dict[str, JsonValue]


class EditParameter(_Edit):
    """Set, rename or remove one value inside a node's arguments, or the source of an output.

    `node` None: `pointer` is inside the workflow's `outputs` and names a declared output.
    `remove`: the pointer's value is taken out and `value` is ignored.
    `renamed_from`: that pointer is taken out in the same edit.
    `mapped`: the list of a mapped node is read from elsewhere; `pointer` is empty, `value` is the
    new `for_each`. A node is never made mapped or plain by it.
    """

    kind: Literal["edit_parameter"] = "edit_parameter"
    node: str | None
    pointer: str
    value: JsonValue = None
    remove: bool = False
    renamed_from: str | None = None
    mapped: bool = False


class InsertNode(_Edit):
    """Put a node, complete with its arguments, at a position of the document."""

    kind: Literal["insert_node"] = "insert_node"
    planned: Node
    position: int = Field(ge=0)


class RemoveNode(_Edit):
    """Take a node out; `rewired` maps each reference to it onto what stands in (text to text)."""

    kind: Literal["remove_node"] = "remove_node"
    node: str
    rewired: dict[str, str] = Field(default_factory=dict[str, str])


class Reorder(_Edit):
    """Replace the `after` of a node; data dependencies are kept by construction."""

    kind: Literal["reorder"] = "reorder"
    node: str
    after: tuple[str, ...]


Edit = Annotated[SwapTool | EditParameter | InsertNode | RemoveNode | Reorder, Field(discriminator="kind")]


def edit_identity(edit: Edit) -> str:
    """Return `sha256:…` over what the edit does, without why."""
    return digest(edit.model_dump(mode="json", exclude={"because"}))
