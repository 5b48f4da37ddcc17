"""A published skill as a tool; its words are those of `server.listed_skill`."""

from __future__ import annotations

import mcp.types as types

from server.listed_skill import description_of, title_of
from server.surface.icons import SKILL_ICONS
from skills_store.skill import Skill

__all__ = ["skill_tool"]


def skill_tool(name: str, skill: Skill) -> types.Tool:
    """Return the tool that a skill is listed as, under a given name."""
    hints = skill.hints
    title = title_of(skill)
    return types.Tool(
        name=name,
        title=title,
        description=description_of(skill),
        input_schema=skill.signature.input_schema,
        output_schema=skill.signature.output_schema,
        icons=SKILL_ICONS,
        annotations=types.ToolAnnotations(
            title=title,
            read_only_hint=hints.read_only,
            destructive_hint=hints.destructive,
            idempotent_hint=hints.idempotent,
            open_world_hint=hints.open_world,
        ),
    )
