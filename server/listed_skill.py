"""What a client's model reads of a skill that is listed as a tool, rendered from record and tests."""

from __future__ import annotations

import json

from pydantic import JsonValue

from skills_store.skill import Skill

__all__ = ["description_of", "listed_characters", "title_of"]

_LONGEST_EXAMPLE = 400
"""Characters; a longer example teaches less than it costs."""


def title_of(skill: Skill) -> str:
    """Return its name for a person."""
    return skill.title or skill.name.replace("_", " ").capitalize()


def description_of(skill: Skill) -> str:
    """Return what it does, when to use it, what to beware of, and an example from its tests."""
    lines = [skill.description or f"Runs {', then '.join(node.target for node in skill.workflow)}."]
    if skill.guidance.when_to_use:
        lines.append(f"Use it when: {skill.guidance.when_to_use}")
    lines += [f"Beware: {pitfall}" for pitfall in skill.guidance.pitfalls]
    if example := _example(skill):
        lines.append(example)
    return "\n".join(lines)


def listed_characters(skill: Skill) -> int:
    """Return the characters of its entry in a list of tools, without annotations and icons."""
    entry = {
        "name": skill.name,
        "title": title_of(skill),
        "description": description_of(skill),
        "inputSchema": skill.signature.input_schema,
        "outputSchema": skill.signature.output_schema,
    }
    return len(json.dumps(entry, separators=(",", ":"), ensure_ascii=False))


def _example(skill: Skill) -> str | None:
    for test in skill.tests:
        text = f"Example: {_json(test.inputs)} returns {_json(test.outputs)}"
        if len(text) <= _LONGEST_EXAMPLE:
            return text
    return None


def _json(value: JsonValue | dict[str, JsonValue]) -> str:
    return json.dumps(value, ensure_ascii=False)
