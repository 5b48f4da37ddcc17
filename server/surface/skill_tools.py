"""A published skill as a tool: its description is rendered from record and tests, nothing else."""

from __future__ import annotations

import json

import mcp.types as types
from pydantic import JsonValue

from skills_store.skill import Skill

__all__ = ["skill_tool"]

_LONGEST_EXAMPLE = 400
"""Characters; a longer example teaches less than it costs."""


def skill_tool(name: str, skill: Skill) -> types.Tool:
    """Return the tool that a skill is listed as, under a given name."""
    hints = skill.hints
    title = skill.title or skill.name.replace("_", " ").capitalize()
    return types.Tool(
        name=name,
        title=title,
        description=_description(skill),
        input_schema=skill.signature.input_schema,
        output_schema=skill.signature.output_schema,
        annotations=types.ToolAnnotations(
            title=title,
            read_only_hint=hints.read_only,
            destructive_hint=hints.destructive,
            idempotent_hint=hints.idempotent,
            open_world_hint=hints.open_world,
        ),
    )


def _description(skill: Skill) -> str:
    lines = [skill.description or f"Runs {', then '.join(node.target for node in skill.workflow)}."]
    if skill.guidance.when_to_use:
        lines.append(f"Use it when: {skill.guidance.when_to_use}")
    lines += [f"Beware: {pitfall}" for pitfall in skill.guidance.pitfalls]
    if example := _example(skill):
        lines.append(example)
    return "\n".join(lines)


def _example(skill: Skill) -> str | None:
    for test in skill.tests:
        text = f"Example: {_json(test.inputs)} returns {_json(test.outputs)}"
        if len(text) <= _LONGEST_EXAMPLE:
            return text
    return None


def _json(value: JsonValue | dict[str, JsonValue]) -> str:
    return json.dumps(value, ensure_ascii=False)
