"""The environment profile of a server: what there is in it and what can be done, as an editable YAML file.

Paper: AgentEvolver (environment profile; facts §4.1). Differs: derived from `tools/list` rather than
written by hand; a person may edit it, and what they leave out is not explored.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import cast

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from catalog.plain_text import plain_text
from catalog.tools import JsonSchema, Tool
from server.exploration.arguments import argument_schemas
from server.exploration.errors import ProfileRejected
from server.exploration.options import Difficulty

__all__ = [
    "Entity",
    "Operation",
    "Profile",
    "TaskPreference",
    "parse_profile",
    "profile_of",
    "render_profile",
]

_LONGEST = 200


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Operation(_Record):
    """Something that can be done: one tool."""

    name: str
    description: str = ""


class Entity(_Record):
    """A thing the server knows of: the noun that several tools share."""

    name: str
    description: str = ""
    attributes: dict[str, str] = Field(default_factory=dict[str, str])
    """Parameters and answers of its tools, and what they mean; examples in these words are tried first."""
    operations: tuple[Operation, ...] = ()


class TaskPreference(_Record):
    """What kind of tasks are wanted."""

    entities: int = Field(default=4, ge=1)
    """Entities in one task, at most."""
    operations: int = Field(default=4, ge=1)
    """Calls in one task, at most, and in a chain that is tried."""
    difficulty: Difficulty = 3
    style: str = ""


class Profile(_Record):
    """What an exploration knows before it begins."""

    name: str
    background: str = "A user of this server."
    """Who asks, for a model that words tasks."""
    entities: tuple[Entity, ...] = ()
    preference: TaskPreference = TaskPreference()

    def entity_of(self) -> dict[str, str]:
        """Return what each tool is about, by its name."""
        return {operation.name: entity.name for entity in self.entities for operation in entity.operations}

    def meanings(self) -> dict[str, str]:
        """Return what parameters mean, by their name, where the profile says it."""
        said = (pair for entity in self.entities for pair in entity.attributes.items())
        return {name: meaning for name, meaning in said if meaning}

    def tools(self) -> frozenset[str]:
        """Return the names of the tools that are to be explored."""
        return frozenset(operation.name for entity in self.entities for operation in entity.operations)


def profile_of(server: str, tools: Iterable[Tool], preference: TaskPreference) -> Profile:
    """Return the profile of a server: its tools grouped by the noun in their names."""
    groups: dict[str, list[Tool]] = {}
    for tool in sorted(tools, key=lambda tool: tool.id.tool):
        groups.setdefault(_noun(tool.id.tool), []).append(tool)
    entities = [_entity(noun, members) for noun, members in sorted(groups.items())]
    return Profile(name=server, entities=tuple(entities), preference=preference)


def _noun(tool: str) -> str:
    parts = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", tool).lower().replace("-", "_").split("_")
    named = [part for part in parts[1:] if len(part) > 2]
    return (named[0] if named else parts[0]).removesuffix("s") or tool


def _entity(noun: str, tools: list[Tool]) -> Entity:
    attributes: dict[str, str] = {}
    for tool in tools:
        for name, schema in {**_answered(tool), **argument_schemas(tool)}.items():
            attributes.setdefault(name, plain_text(str(schema.get("description", "")), _LONGEST))
    return Entity(
        name=noun,
        attributes=attributes,
        operations=tuple(
            Operation(name=t.id.tool, description=plain_text(t.description.split("\n")[0], _LONGEST))
            for t in tools
        ),
    )


def _answered(tool: Tool) -> dict[str, JsonSchema]:
    """Return the schema of each member of an answer that a tool declares."""
    properties = (tool.output_schema or {}).get("properties")
    if not isinstance(properties, dict):
        return {}
    return {name: part for name, part in properties.items() if isinstance(part, dict)}


def render_profile(profile: Profile) -> str:
    """Return the profile as YAML."""
    dump = cast("Callable[..., str]", yaml.safe_dump)  # pyright: ignore[reportUnknownMemberType]
    return dump(profile.model_dump(mode="json"), sort_keys=False, allow_unicode=True, width=100)


def parse_profile(path: Path) -> Profile:
    """Return the profile of a file.

    Raises:
        ProfileRejected: it cannot be read or is no profile; names the place.
    """
    try:
        document = cast("object", yaml.safe_load(path.read_text(encoding="utf-8")))
        return Profile.model_validate(document)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ProfileRejected(f"{path}: {error}") from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = "/".join(str(part) for part in first["loc"])
        raise ProfileRejected(f"{path}: {place or 'the top'}: {first['msg']}") from error
