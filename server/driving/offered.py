"""What a driven model may call: some tools and skills, by the names it calls them by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue

from catalog.tools import JsonSchema, Tool, ToolId
from server.planning.catalog_view import CatalogView, render_tool
from skills_store.skill import Skill
from skills_store.workflow.model import Node, SkillRef

__all__ = ["Offered", "offer"]


@dataclass(frozen=True)
class Offered:
    """Tools and skills by label, and the text that shows them."""

    text: str
    tools: Mapping[str, ToolId] = field(default_factory=dict[str, ToolId])
    skills: Mapping[str, Skill] = field(default_factory=dict[str, Skill])
    schemas: tuple[JsonSchema, ...] = ()
    """As `{name, description, inputSchema}`, for samples to train on."""

    @property
    def labels(self) -> tuple[str, ...]:
        """Everything that can be called."""
        return (*self.skills, *self.tools)

    def node(self, label: str, name: str, arguments: dict[str, JsonValue]) -> Node | None:
        """Return the call as a node of that id, None where nothing is called so."""
        if label in self.skills:
            skill = self.skills[label]
            return Node(id=name, skill=SkillRef(name=skill.name, version=skill.version), arguments=arguments)
        tool = self.tools.get(label)
        return None if tool is None else Node(id=name, tool=tool, arguments=arguments)


def offer(view: CatalogView, skills: Sequence[Skill]) -> Offered:
    """Return what is offered: the tools of a view, and skills under their own names where those are free."""
    tools = {view.labels[tool.id]: tool.id for tool in view.tools}
    named = {skill.name: skill for skill in skills if skill.name not in tools}
    lines = [_skill_line(skill) for skill in named.values()]
    text = "\n".join([*(["Tested skills, prefer them:"] if lines else []), *lines, "Tools:", view.text])
    schemas = [
        *(_schema(name, skill.description, skill.signature.input_schema) for name, skill in named.items()),
        *(_schema(view.labels[tool.id], tool.description, tool.input_schema) for tool in view.tools),
    ]
    return Offered(text, tools, named, tuple(schemas))


def _skill_line(skill: Skill) -> str:
    shown = Tool(
        ToolId("skillbank", skill.name),
        skill.signature.input_schema,
        skill.signature.output_schema,
        description=skill.description,
    )
    return render_tool(shown, skill.name)


def _schema(name: str, description: str, schema: JsonSchema) -> JsonSchema:
    return {"name": name, "description": description, "inputSchema": schema}
