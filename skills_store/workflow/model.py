"""The workflow document: what is planned. Executed steps are `skills_store.trace`.

Shaped after Arazzo 1.1. Grammar of references, templates and selectors: `references`.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Annotated, Literal, cast

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    ValidationError,
    model_validator,
)
from pydantic_core import PydanticCustomError

from catalog.tools import ToolId
from skills_store.errors import MalformedWorkflow
from skills_store.workflow.faults import Fault, Malformed

__all__ = ["Code", "Node", "SkillRef", "Workflow", "json_pointer", "parse_workflow"]


def _as_tuple(value: object) -> object:
    return (value,) if isinstance(value, str) else value


Assertions = Annotated[
    tuple[str, ...], BeforeValidator(_as_tuple, json_schema_input_type=str | tuple[str, ...])
]


class _Document(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class SkillRef(_Document):
    """A skill pinned by version, called as a node."""

    name: str
    version: int = Field(ge=1)


class Code(_Document):
    """A Python function that a sandbox runs: what a graph of calls cannot say."""

    source: str = Field(min_length=1, max_length=64_000)
    entry: str = Field(pattern=r"^[A-Za-z][A-Za-z0-9_]*$", max_length=64)
    """Name of the function in `source` that is called."""
    engine: Literal["monty", "process"]
    engine_version: str = Field(max_length=100)
    """Version under which it was verified; no other one runs it."""
    takes: dict[str, JsonValue]
    """JSON Schema of its arguments."""
    gives: dict[str, JsonValue]
    """JSON Schema of what it returns."""
    tools: dict[str, ToolId] = Field(default_factory=dict[str, ToolId])
    """By the names it calls them under, the tools it was granted; empty: it is pure."""


class Node(_Document):
    """One planned call. Exactly one of `tool`, `skill` and `code` is set."""

    id: str = Field(pattern=r"^[a-z][a-z0-9_]*$", max_length=64)
    tool: ToolId | None = None
    skill: SkillRef | None = None
    code: Code | None = None
    arguments: dict[str, JsonValue] = Field(default_factory=dict[str, JsonValue])
    for_each: JsonValue = None
    """Reference or selector that yields a list; None: the node runs once."""
    when: JsonValue = None
    """Reference, selector or boolean; false skips the node; None: always."""
    after: tuple[str, ...] = ()
    """Ids that must have finished, without data."""
    expect: Assertions = ()
    timeout_seconds: float | None = Field(default=None, gt=0)

    @model_validator(mode="after")
    def _one_target(self) -> Node:
        if sum(target is not None for target in (self.tool, self.skill, self.code)) != 1:
            raise ValueError("a node has exactly one of 'tool', 'skill' and 'code'")
        return self

    @property
    def tools(self) -> tuple[ToolId, ...]:
        """The tools it calls by itself, those granted to its code included."""
        if self.tool is not None:
            return (self.tool,)
        return tuple(dict.fromkeys(self.code.tools.values())) if self.code is not None else ()

    @property
    def target(self) -> str:
        """Readable name of what is called."""
        if self.tool is not None:
            return str(self.tool)
        if self.code is not None:
            return f"python {self.code.entry}"
        skill = cast("SkillRef", self.skill)
        return f"skill {skill.name}@{skill.version}"


class Workflow(_Document):
    """A typed graph of calls. Edges are its references and `after`, nothing else."""

    name: str = Field(min_length=1, max_length=128)
    inputs: dict[str, JsonValue]
    """JSON Schema of the inputs, `type: object`."""
    nodes: tuple[Node, ...]
    outputs: dict[str, JsonValue]
    description: str | None = None
    expect: Assertions = ()

    @model_validator(mode="after")
    def _unique_ids(self) -> Workflow:
        ids = [node.id for node in self.nodes]
        if again := next((place for place, node_id in enumerate(ids) if node_id in ids[:place]), None):
            message = "node id '{id}' is not unique, node {first} has it already"
            context = {"id": ids[again], "first": ids.index(ids[again]), "place": again}
            raise PydanticCustomError("id_twice", message, context)
        return self

    def __iter__(self) -> Iterator[Node]:  # pyright: ignore[reportIncompatibleMethodOverride]
        return iter(self.nodes)

    def node(self, node_id: str) -> Node | None:
        """Return the node of that id, or None."""
        return next((node for node in self.nodes if node.id == node_id), None)

    def index(self, node_id: str) -> int:
        """Return the position of a node in the document.

        Raises:
            KeyError: no such node.
        """
        for position, node in enumerate(self.nodes):
            if node.id == node_id:
                return position
        raise KeyError(node_id)

    def replacing(self, changed: Node) -> Workflow:
        """Return the workflow with the node of the same id replaced."""
        nodes = tuple(changed if node.id == changed.id else node for node in self.nodes)
        return self.model_copy(update={"nodes": nodes})

    def to_json(self) -> dict[str, JsonValue]:
        """Return the document, with fields at their default left out."""
        document = self.model_dump(mode="json", exclude_defaults=True)
        for node in document["nodes"]:
            node.setdefault("arguments", {})
        return document


def json_pointer(*parts: str | int) -> str:
    """Return the RFC 6901 pointer of these parts."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)


def parse_workflow(document: object) -> Workflow:
    """Return the workflow of a JSON document, given as text, bytes or a parsed value.

    Raises:
        MalformedWorkflow: with one fault per problem and its pointer.
    """
    if isinstance(document, str | bytes | bytearray):
        try:
            document = json.loads(document, parse_constant=_refuse_constant)
        except (ValueError, RecursionError) as error:
            raise MalformedWorkflow([Malformed(message=f"not JSON: {error}")]) from error
    if not isinstance(document, dict | Workflow):
        kind = "null" if document is None else type(document).__name__
        raise MalformedWorkflow([Malformed(message=f"a workflow is a JSON object, this is a {kind}")])
    try:
        return Workflow.model_validate(document)
    except ValidationError as error:
        whole = cast("object", document)
        problems = [dict(problem) for problem in error.errors(include_url=False)]
        faults = [_fault(problem, whole) for problem in problems]
        raise MalformedWorkflow(faults, whole, _without_unknown(whole, problems)) from error


def _without_unknown(document: object, problems: list[dict[str, object]]) -> Workflow | None:
    """Return the workflow without its unknown fields, None when those are not all that is wrong."""
    if any(problem["type"] != "extra_forbidden" for problem in problems):
        return None
    rest = copy.deepcopy(document)
    for problem in problems:
        *above, last = cast("tuple[str | int, ...]", problem["loc"])
        holder = rest
        for part in above:
            holder = cast("dict[str | int, object]", holder)[part]
        del cast("dict[str | int, object]", holder)[last]
    try:
        return Workflow.model_validate(rest)
    except ValidationError:
        return None


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not allowed")


def _fault(problem: dict[str, object], document: object) -> Fault:
    place = cast("tuple[str | int, ...]", problem["loc"])
    message = str(problem["msg"]).removeprefix("Value error, ").replace("valid tuple", "valid list")
    if problem["type"] == "extra_forbidden":
        message = f"unknown field {place[-1]!r}"
    elif problem["type"] == "missing":
        message = f"field {place[-1]!r} is required"
    elif problem["type"] == "id_twice":
        place = ("nodes", cast("dict[str, int]", problem["ctx"])["place"], "id")
    return Malformed(message=message, pointer=json_pointer(*place), node=_node_at(place, document))


def _node_at(place: tuple[str | int, ...], document: object) -> str | None:
    if len(place) < 2 or place[0] != "nodes" or not isinstance(place[1], int):
        return None
    nodes = cast("dict[str, object]", document).get("nodes")
    node = cast("list[object]", nodes)[place[1]]
    found = cast("dict[str, object]", node).get("id") if isinstance(node, dict) else None
    return found if isinstance(found, str) else None
