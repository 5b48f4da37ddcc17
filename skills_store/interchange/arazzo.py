"""Renders a skill as an Arazzo 1.1 description; calls of MCP tools are an extension, `x-mcp-tool`.

Arazzo has no step for MCP tools yet: a step names its tool by the extension, its arguments are its
`parameters`, and references are runtime expressions. What Arazzo cannot say (maps over lists,
postconditions in jmespath, code, contracts) is kept under `x-skillbank`, so that nothing is lost silently.
Tests stay behind. Reading such a description is `arazzo_reading`.
"""

from __future__ import annotations

import re

from pydantic import JsonValue

from skills_store.interchange.portable import PortableSkill, json_text
from skills_store.interchange.skill_md import agent_skill_name
from skills_store.workflow.model import Node
from skills_store.workflow.references import is_selector

__all__ = ["render_arazzo"]

_NODE = re.compile(r"\$nodes\.([a-z][a-z0-9_]*)\.output")


def render_arazzo(skill: PortableSkill, version: int) -> str:
    """Return the document as JSON, which YAML readers take too."""
    servers = sorted({tool.server for node in skill.workflow for tool in node.tools})
    sources: list[JsonValue] = [
        {"name": re.sub(r"[^A-Za-z0-9_-]", "_", name), "url": f"mcp://{name}", "x-mcp-server": name}
        for name in servers
    ]
    steps: list[JsonValue] = [_step(node) for node in skill.workflow]
    workflow: dict[str, JsonValue] = {
        "workflowId": agent_skill_name(skill.name),
        "summary": skill.title or skill.name,
        "description": skill.description,
        "inputs": skill.signature.input_schema,
        "steps": steps,
        "outputs": {name: _expression(value) for name, value in skill.workflow.outputs.items()},
    }
    own: dict[str, JsonValue] = {
        "name": skill.name,
        "outputSchema": skill.signature.output_schema,
        "pins": [pin.model_dump(mode="json") for pin in skill.pins],
    }
    if skill.workflow.expect:
        own["expect"] = [*skill.workflow.expect]
    workflow["x-skillbank"] = own
    document: dict[str, JsonValue] = {
        "arazzo": "1.1.0",
        "info": {
            "title": skill.title or skill.name,
            "version": str(version),
            "x-skillbank-digest": skill.digest,
        },
        "sourceDescriptions": sources,
        "workflows": [workflow],
    }
    return json_text(document)


def _step(node: Node) -> dict[str, JsonValue]:
    step: dict[str, JsonValue] = {"stepId": node.id, "description": node.target}
    if node.tool is not None:
        step["x-mcp-tool"] = {"server": node.tool.server, "tool": node.tool.tool}
    parameters: list[JsonValue] = [
        {"name": name, "value": _expression(value)} for name, value in node.arguments.items()
    ]
    step["parameters"] = parameters
    if node.after:
        step["dependsOn"] = [f"$steps.{other}" for other in node.after]
    step["outputs"] = {"output": "$response.body"}
    if own := _own(node):
        step["x-skillbank"] = own
    return step


def _own(node: Node) -> dict[str, JsonValue]:
    """Return what Arazzo has no words for."""
    own: dict[str, JsonValue] = {}
    if node.skill is not None:
        own["skill"] = {"name": node.skill.name, "version": node.skill.version}
    if node.code is not None:
        own["code"] = node.code.model_dump(mode="json")
    if node.for_each is not None:
        own["forEach"] = _expression(node.for_each)
    if node.when is not None:
        own["when"] = _expression(node.when)
    if node.expect:
        own["expect"] = [*node.expect]
    return own


def _expression(value: JsonValue) -> JsonValue:
    """Return a value with its references as runtime expressions of Arazzo."""
    match value:
        case str():
            return _NODE.sub(r"$steps.\1.outputs.output", value)
        case dict() if is_selector(value):
            return {
                key: _expression(part) if key in ("context", "with") else part for key, part in value.items()
            }
        case dict():
            return {key: _expression(part) for key, part in value.items()}
        case list():
            return [_expression(part) for part in value]
        case _:
            return value
