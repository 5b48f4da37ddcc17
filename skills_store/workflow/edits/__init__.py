"""Typed edits: the only way a candidate differs from its parent.

`models` says what an edit is, `application` what it does and what it may never do, `inversion`
what takes it back, `rendering` how a person reads it.
"""

from skills_store.workflow.edits.application import apply_edit
from skills_store.workflow.edits.inversion import invert_edit
from skills_store.workflow.edits.models import (
    Edit,
    EditParameter,
    EditRefused,
    InsertNode,
    RemoveNode,
    Reorder,
    SwapTool,
    edit_identity,
)
from skills_store.workflow.edits.rendering import render_edit

__all__ = [
    "Edit",
    "EditParameter",
    "EditRefused",
    "InsertNode",
    "RemoveNode",
    "Reorder",
    "SwapTool",
    "apply_edit",
    "edit_identity",
    "invert_edit",
    "render_edit",
]
