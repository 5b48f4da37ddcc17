"""Annotations of a published skill, derived from what its tools do by the operator's word."""

from __future__ import annotations

from collections.abc import Collection

from catalog.effects import Effect, EffectTable
from catalog.tools import Tool
from skills_store.skill import ToolHints

__all__ = ["derived_hints"]


def derived_hints(tools: Collection[Tool], effects: EffectTable) -> ToolHints:
    """Return annotations: read-only if all tools are free, destructive if any may destroy."""
    classes = [effects.effect(tool.id) for tool in tools]
    costly = [tool for tool in tools if not effects.effect(tool.id).is_free]
    return ToolHints(
        read_only=not costly,
        destructive=any(tool.annotations.destructive is not False for tool in costly),
        idempotent=all(effect is Effect.PURE for effect in classes),
        open_world=any(
            effects.effect(t.id) is not Effect.PURE and t.annotations.open_world is not False for t in tools
        ),
    )
