"""Tools as values: identity, definition, and the snapshot of all tools at one moment.

Two hashes per tool (`CONTRACTS`, Hashes): the contract (name, schemas, annotations), whose
change makes dependent skills stale, and the prose (title, description), whose change does not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import ClassVar

from pydantic import ConfigDict

from catalog.canonical import JsonValue, digest

__all__ = ["Annotations", "JsonSchema", "Snapshot", "Tool", "ToolId"]

JsonSchema = dict[str, JsonValue]


@dataclass(frozen=True, order=True)
class ToolId:
    """Which tool of which configured server; never resolved by bare name."""

    server: str
    tool: str

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    def __str__(self) -> str:
        return f"{self.server}/{self.tool}"


@dataclass(frozen=True, slots=True)
class Annotations:
    """What a server says about its tool; None where it says nothing. Hints, never trusted alone."""

    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None
    open_world: bool | None = None

    def to_json(self) -> dict[str, JsonValue]:
        """Return the protocol's keys, silent ones left out."""
        named: dict[str, JsonValue] = {
            "readOnlyHint": self.read_only,
            "destructiveHint": self.destructive,
            "idempotentHint": self.idempotent,
            "openWorldHint": self.open_world,
        }
        return {key: value for key, value in named.items() if value is not None}


@dataclass(frozen=True)
class Tool:
    """One upstream tool as it was listed.

    `output_schema` is None when the server declares none. Schemas are JSON Schema objects
    and must not be mutated.
    """

    id: ToolId
    input_schema: JsonSchema
    output_schema: JsonSchema | None = None
    title: str | None = None
    description: str = ""
    annotations: Annotations = field(default_factory=Annotations)

    @cached_property
    def contract_hash(self) -> str:
        """`sha256:…` over name, input and output schema and annotations."""
        return digest(
            {
                "name": self.id.tool,
                "inputSchema": self.input_schema,
                "outputSchema": self.output_schema,
                "annotations": self.annotations.to_json(),
            }
        )

    @cached_property
    def prose_hash(self) -> str:
        """`sha256:…` over title and description."""
        return digest({"title": self.title, "description": self.description})


@dataclass(frozen=True)
class Snapshot:
    """All known tools at one moment. Unreachable servers keep their last listed tools."""

    tools: Mapping[ToolId, Tool]

    @classmethod
    def of(cls, *tools: Tool) -> Snapshot:
        """Return the snapshot of these tools, the later of two with one id winning."""
        return cls(MappingProxyType({tool.id: tool for tool in tools}))

    def __iter__(self) -> Iterator[Tool]:
        return iter(self.tools.values())

    def __len__(self) -> int:
        return len(self.tools)

    def __contains__(self, tool: ToolId) -> bool:
        return tool in self.tools

    def get(self, tool: ToolId) -> Tool | None:
        """Return the tool, or None when this snapshot lacks it."""
        return self.tools.get(tool)

    @property
    def servers(self) -> frozenset[str]:
        """Names of the servers that have at least one tool here."""
        return frozenset(tool.server for tool in self.tools)

    def of_server(self, server: str) -> tuple[Tool, ...]:
        """Return the tools of one server, ordered by name."""
        return tuple(sorted((t for t in self if t.id.server == server), key=lambda t: t.id))

    @cached_property
    def hash(self) -> str:
        """`sha256:…` over every tool's contract and prose."""
        return digest(sorted([str(t.id), t.contract_hash, t.prose_hash] for t in self))
