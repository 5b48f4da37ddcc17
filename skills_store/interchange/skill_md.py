"""Renders a skill as an Agent Skill: a folder with `SKILL.md` that hosts without this bank read.

Pure: from the record to bytes by path. `assets/workflow.json` is what counts; the prose beside it
is rendered from graph, schemas and guidance, never from what a tool answered. Reading such a
folder back is `skills_store.interchange.packages`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import cast

from pydantic import JsonValue

from catalog.plain_text import plain_text
from catalog.tools import JsonSchema
from skills_store.interchange.portable import PortableSkill, json_text, portable
from skills_store.skill import Skill
from skills_store.workflow.model import Node

__all__ = ["METADATA_PREFIX", "agent_skill_name", "frontmatter", "render_package", "render_skill_md"]

METADATA_PREFIX = "io.skillbank/"
_LONGEST_DESCRIPTION = 1024
_LONGEST_ARGUMENT = 80
_MOST_STEPS = 100
"""Steps that are written out, so that the text stays within what hosts take."""
_RUN_SCRIPT = Path(__file__).with_name("run_script.txt")


def agent_skill_name(name: str) -> str:
    """Return the name of a skill as hosts take it, with hyphens; also the name of its folder."""
    return "-".join(part for part in name.split("_") if part)


def render_package(skill: Skill, called: Sequence[Skill] = ()) -> dict[str, bytes]:
    """Return the files of a skill's package by path inside its folder.

    Args:
        skill: to be exported.
        called: the skills that its workflow calls, and those that they call.
    """
    one = portable(skill)
    documents: dict[str, JsonValue] = {
        "assets/workflow.json": one.workflow.to_json(),
        "assets/schema.json": one.signature.model_dump(mode="json"),
        "assets/tests.json": [test.model_dump(mode="json") for test in one.tests],
        "assets/skill.json": _record(one),
        "assets/evidence.json": _evidence(skill),
    }
    if called:
        documents["assets/skills.json"] = [
            {"version": other.version, **portable(other).to_json()} for other in called
        ]
    texts = {path: json_text(document) for path, document in documents.items()}
    texts["SKILL.md"] = render_skill_md(skill)
    texts["scripts/run.py"] = _RUN_SCRIPT.read_text(encoding="utf-8")
    return {path: text.encode() for path, text in sorted(texts.items())}


def _record(skill: PortableSkill) -> dict[str, JsonValue]:
    """Return what the other files of the package do not hold."""
    elsewhere = {"workflow", "signature", "tests"}
    rest = {key: value for key, value in skill.to_json().items() if key not in elsewhere}
    return {**rest, "digest": skill.digest}


def _evidence(skill: Skill) -> dict[str, JsonValue]:
    """Return which gates the skill passed where it comes from, without the values it was tried on."""
    checks = skill.verdict.checks if skill.verdict else ()
    shown: list[JsonValue] = [{"name": c.name, "gate": c.gate, "passed": c.passed} for c in checks]
    return {"state": skill.state, "checks": shown, "tests": len(skill.tests)}


def frontmatter(skill: Skill) -> dict[str, JsonValue]:
    """Return the fields at the head of `SKILL.md`, all of them texts or one level of texts."""
    fields: dict[str, JsonValue] = {
        "name": agent_skill_name(skill.name),
        "description": _what_and_when(skill),
        "compatibility": "Needs skillbank and the tool servers named below."
        if any(node.tool for node in skill.workflow)
        else "Needs skillbank.",
        "metadata": {
            f"{METADATA_PREFIX}name": skill.name,
            f"{METADATA_PREFIX}version": str(skill.version),
            f"{METADATA_PREFIX}state": skill.state,
            f"{METADATA_PREFIX}workflow": "assets/workflow.json",
            f"{METADATA_PREFIX}digest": portable(skill).digest,
        },
    }
    tools = [str(tool) for tool in dict.fromkeys(node.tool for node in skill.workflow if node.tool)]
    if allowed := [tool for tool in tools if not any(character.isspace() for character in tool)]:
        fields["allowed-tools"] = " ".join(allowed)
    return fields


def _what_and_when(skill: Skill) -> str:
    text = " ".join(part for part in (skill.description, skill.guidance.when_to_use) if part)
    return _line(text or f"Runs {_targets(skill)}.", _LONGEST_DESCRIPTION)


def render_skill_md(skill: Skill) -> str:
    """Return the text of `SKILL.md`."""
    title = skill.title or skill.name.replace("_", " ").capitalize()
    sections = [
        f"---\n{_yaml(frontmatter(skill))}---",
        f"# {_line(title, 200)}\n\n{_line(skill.description or f'Runs {_targets(skill)}.', 4_000)}",
        _when(skill),
        f"## Inputs\n\n{_table(skill.signature.input_schema)}",
        f"## Outputs\n\n{_table(skill.signature.output_schema)}",
        f"## Steps\n\n{_steps(skill.workflow.nodes)}",
        _listed("Mind", skill.guidance.pitfalls),
        _running(skill),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def _targets(skill: Skill) -> str:
    return ", then ".join(node.target for node in skill.workflow)


def _when(skill: Skill) -> str:
    guidance = skill.guidance
    lines = [guidance.when_to_use] if guidance.when_to_use else []
    return _listed("When to use it", (*lines, *guidance.when_not))


def _listed(heading: str, lines: Iterable[str]) -> str:
    items = [f"- {_line(line, 1_000)}" for line in lines]
    return "\n".join([f"## {heading}\n", *items]) if items else ""


def _table(schema: JsonSchema) -> str:
    properties = schema.get("properties")
    if not isinstance(properties, dict) or not properties:
        return "None."
    required = schema.get("required")
    needed = required if isinstance(required, list) else []
    rows = ["| name | type | required | description |", "|---|---|---|---|"]
    rows += [_row(name, part, name in needed) for name, part in properties.items()]
    return "\n".join(rows)


def _row(name: str, part: JsonValue, is_needed: bool) -> str:
    schema: Mapping[str, JsonValue] = part if isinstance(part, dict) else {}
    kind = schema.get("type")
    kinds = " or ".join(str(one) for one in kind) if isinstance(kind, list) else str(kind or "any")
    said = _line(str(schema.get("description") or ""), 300).replace("|", "\\|")
    return f"| `{_line(name, 100)}` | {kinds} | {'yes' if is_needed else 'no'} | {said} |"


def _steps(nodes: Sequence[Node]) -> str:
    lines = [f"{number}. {_step(node)}" for number, node in enumerate(nodes[:_MOST_STEPS], start=1)]
    if len(nodes) > _MOST_STEPS:
        lines.append(f"{_MOST_STEPS + 1}. … {len(nodes) - _MOST_STEPS} more in `assets/workflow.json`")
    return "\n".join(lines)


def _step(node: Node) -> str:
    taken = ", ".join(f"{name} = {_short(value)}" for name, value in node.arguments.items())
    manner = [f"for each of {_short(node.for_each)}"] if node.for_each is not None else []
    manner += [f"when {_short(node.when)}"] if node.when is not None else []
    manner += [f"after {', '.join(node.after)}"] if node.after else []
    return f"`{node.id}`: {'; '.join([f'`{_line(node.target, 200)}`({taken})', *manner])}"


def _short(value: JsonValue) -> str:
    text = _line(json.dumps(value, ensure_ascii=False), _LONGEST_ARGUMENT)
    return f"`{text.replace('`', chr(39))}`"


def _running(skill: Skill) -> str:
    example = skill.tests[0].inputs if skill.tests else {}
    given = json.dumps(example, ensure_ascii=False)
    shown = given if len(given) <= 400 else "{…}"
    return (
        f"## Running it\n\nCall the tool `{skill.name}` of skillbank, or run it from here:\n\n"
        f"```bash\npython scripts/run.py --config mcp.json --inputs {_shell(shown)}\n```\n\n"
        "`mcp.json` is a standard `mcpServers` file with the tool servers it needs. The steps are"
        " executed as `assets/workflow.json` says, without a model."
    )


def _shell(text: str) -> str:
    quoted = text.replace("'", "'\\''")
    return f"'{quoted}'"


def _line(text: str, limit: int) -> str:
    return plain_text(" ".join(text.split()), limit)


def _yaml(fields: Mapping[str, JsonValue]) -> str:
    """Return block YAML with every value quoted; JSON strings are YAML ones."""
    lines: list[str] = []
    for key, value in fields.items():
        if isinstance(value, dict):
            lines += [f"{key}:", *(f"  {name}: {_quoted(part)}" for name, part in value.items())]
        else:
            lines.append(f"{key}: {_quoted(value)}")
    return "\n".join(lines) + "\n"


def _quoted(value: JsonValue) -> str:
    # Hosts find the end of the head by three hyphens, wherever they stand.
    return json.dumps(cast("str", value), ensure_ascii=False).replace("---", "--\\u002d")
