"""What a client's model reads of a skill that is listed as a tool, rendered from record and tests."""

from __future__ import annotations

import json

from pydantic import JsonValue

from skills_store.skill import Skill

__all__ = ["description_of", "listed_characters", "title_of"]

_LONGEST_DESCRIPTION = 500
_LONGEST_LINE = 200
"""Characters; what a list leaves out `describe_skill` tells."""


def title_of(skill: Skill) -> str:
    """Return its name for a person."""
    return skill.title or skill.name.replace("_", " ").capitalize()


def description_of(skill: Skill) -> str:
    """Return what it does, when to use it, what to beware of, and an example from its tests.

    Where that is too long for a list, what it does comes first, then the example, then the rest.
    """
    does = skill.description or f"Runs {', then '.join(node.target for node in skill.workflow)}."
    when = [f"Use it when: {skill.guidance.when_to_use}"] if skill.guidance.when_to_use else []
    lines = [does, *when, *(f"Beware: {pitfall}" for pitfall in skill.guidance.pitfalls)]
    lines = [_cut(line) for line in lines]
    example = _example(skill)
    left = _LONGEST_DESCRIPTION - len(example or "")
    kept = list[str]()
    for line in lines:
        if len(line) < left:
            kept.append(line)
            left -= len(line) + 1
    return "\n".join([*kept, example] if example else kept)


def _cut(line: str) -> str:
    return line if len(line) <= _LONGEST_LINE else line[: _LONGEST_LINE - 1].rstrip() + "…"


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
        if len(text) <= _LONGEST_LINE:
            return text
    return None


def _json(value: JsonValue | dict[str, JsonValue]) -> str:
    return json.dumps(value, ensure_ascii=False)
