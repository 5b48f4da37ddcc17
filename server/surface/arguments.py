"""The arguments of the always-there tools: one model per tool is its schema and its parser.

Checking a client's arguments against a schema, ours or a skill's, is `validation`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, JsonValue, WithJsonSchema
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from catalog.tools import JsonSchema, ToolId
from server.requests import Budget, RepairRequest, SaveRequest, SolveRequest
from server.surface.port import TRACE_META_KEY
from server.verification import Checks

__all__ = [
    "CallSkill",
    "CallTool",
    "DescribeSkill",
    "FindSkills",
    "FindTools",
    "RepairWorkflow",
    "ReportOutcome",
    "RunWorkflow",
    "SaveSkill",
    "Solve",
    "input_schema",
]

_BUDGET = Budget()

_TEXT: JsonSchema = {"type": "string"}
_STRINGS: JsonSchema = {"type": "array", "items": {"type": "string"}}
_ANY_OBJECT: JsonSchema = {"type": "object", "additionalProperties": True}

_NODE: JsonSchema = {
    "type": "object",
    "properties": {
        "id": {"type": "string", "description": "Unique: a-z, 0-9, _."},
        "tool": {
            "type": "object",
            "description": "As find_tools names it.",
            "properties": {"server": _TEXT, "tool": _TEXT},
            "required": ["server", "tool"],
        },
        "skill": {
            "type": "object",
            "description": "Instead of tool.",
            "properties": {"name": _TEXT, "version": {"type": "integer"}},
            "required": ["name", "version"],
        },
        "arguments": {
            **_ANY_OBJECT,
            "description": "Literals, or whole-string references: $inputs.name, $nodes.id.output, $item, "
            "each with optional #/json/pointer.",
        },
        "for_each": {
            "anyOf": [_TEXT, _ANY_OBJECT],
            "description": "Yields a list: the node runs for each $item.",
        },
        "when": {
            "anyOf": [_TEXT, _ANY_OBJECT, {"type": "boolean"}],
            "description": "False skips the node.",
        },
        "after": {**_STRINGS, "description": "Node ids to wait for."},
        "expect": {**_STRINGS, "description": "Assertions."},
        "timeout_seconds": {"type": "number"},
    },
    "required": ["id"],
}
_WORKFLOW: JsonSchema = {
    "type": "object",
    "description": "Edges follow from references.",
    "properties": {
        "name": _TEXT,
        "description": _TEXT,
        "inputs": {**_ANY_OBJECT, "description": "JSON Schema, type object."},
        "nodes": {"type": "array", "items": _NODE},
        "outputs": {
            **_ANY_OBJECT,
            "description": "Name to reference.",
        },
        "expect": {**_STRINGS, "description": "Assertions on the outputs."},
    },
    "required": ["name", "inputs", "nodes", "outputs"],
}


class _Arguments(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


Document = Annotated[dict[str, JsonValue], WithJsonSchema(_WORKFLOW)]
Draft = Annotated[dict[str, JsonValue], WithJsonSchema(_ANY_OBJECT)]
Values = Annotated[dict[str, JsonValue], WithJsonSchema(_ANY_OBJECT)]


class _Checked(_Arguments):
    """Arguments that say what counts as right."""

    inputs: Values = Field(default_factory=dict, description="Inputs by name.")
    assertions: tuple[str, ...] = Field(
        default=(),
        description="JMESPath over output, inputs, nodes: output.total > `0`",
    )
    output_schema: Values = Field(default_factory=dict, description="JSON Schema of the outputs.")
    detail: bool = Field(
        default=False,
        description="Also return every step.",
    )

    @property
    def checks(self) -> Checks:
        """What counts as right."""
        return Checks(assertions=self.assertions, schema=dict(self.output_schema) or None)


class _Searching(_Checked):
    """Arguments of a search: what it may spend, and what it leaves behind."""

    budget_seconds: float = Field(default=_BUDGET.seconds, ge=0, description="Search time.")
    budget_calls: int = Field(default=_BUDGET.calls, ge=0, description="Upstream calls.")
    save_as: str | None = Field(
        default=None,
        pattern=r"^[a-z][a-z0-9_]{0,39}$",
        description="Keep the verified result as this skill.",
    )

    @property
    def budget(self) -> Budget:
        """What the search may spend."""
        return Budget(seconds=self.budget_seconds, calls=self.budget_calls)


class Solve(_Searching):
    """Arguments of `solve`."""

    task: str = Field(min_length=1, description="The task, with every value it needs.")
    budget_tokens: int = Field(
        default=_BUDGET.tokens,
        ge=0,
        description="Tokens of a planning model.",
    )
    answer: bool = Field(default=False, description="Also put the outputs into words.")
    judge: bool = Field(default=False, description="Also have a model score the run.")

    def request(self) -> SolveRequest:
        """Return the use case's request."""
        return SolveRequest(
            inputs=self.inputs,
            checks=self.checks,
            budget=replace(self.budget, tokens=self.budget_tokens),
            save=self.save_as,
            answer=self.answer,
            judge=self.judge,
        )


class RunWorkflow(_Checked):
    """Arguments of `run_workflow`."""

    workflow: Document


class RepairWorkflow(_Searching):
    """Arguments of `repair_workflow`."""

    workflow: Draft = Field(description="In the form that run_workflow takes.")
    task: str | None = Field(default=None, description="What it is for.")

    def request(self) -> RepairRequest:
        """Return the use case's request."""
        return RepairRequest(
            task=self.task, inputs=self.inputs, checks=self.checks, budget=self.budget, save=self.save_as
        )


class _Query(_Arguments):
    query: str = Field(min_length=1, description="What it should do.")
    limit: int = Field(default=10, ge=1, le=50, description="Most hits to return.")


class FindSkills(_Query):
    """Arguments of `find_skills`."""


class FindTools(_Query):
    """Arguments of `find_tools`."""


class DescribeSkill(_Arguments):
    """Arguments of `describe_skill`."""

    name: str = Field(description="As find_skills gives it.")
    version: int | None = Field(default=None, ge=1, description="Left out: the current one.")


class CallSkill(DescribeSkill):
    """Arguments of `call_skill`."""

    arguments: Values = Field(default_factory=dict, description="The skill's inputs by name.")


class CallTool(_Arguments):
    """Arguments of `call_tool`."""

    server: str = Field(description="As find_tools gives it.")
    tool: str = Field(description="Its name there.")
    arguments: Values = Field(default_factory=dict, description="By its input_schema.")
    trace: str | None = Field(
        default=None,
        min_length=1,
        max_length=100,
        description="Your name for calls that belong together.",
    )

    @property
    def id(self) -> ToolId:
        """The tool that is meant."""
        return ToolId(self.server, self.tool)


class SaveSkill(_Arguments):
    """Arguments of `save_skill`."""

    name: str = Field(pattern="^[a-z][a-z0-9_]{0,39}$", description="Small letters, digits and _.")
    trace: str | None = Field(
        default=None,
        description="trace_id of a run, or as given to call_tool. Left out: this connection's calls.",
    )
    calls: tuple[int, ...] = Field(default=(), description="Only these calls, numbered from 1.")
    task: str | None = Field(default=None, description="The task; values it says become the skill's inputs.")
    inputs: Values = Field(
        default_factory=dict,
        description='Values that become inputs, by name: {"city": "Oslo"}.',
    )
    examples: tuple[Values, ...] = Field(default=(), description="Other inputs that work, to try it on.")

    def request(self, conversation: str | None, *, is_run: bool) -> SaveRequest:
        """Return what is asked of the bank.

        Args:
            conversation: the one the client is in, None when it is in none.
            is_run: whether `trace` is the id of a kept run.
        """
        return SaveRequest(
            name=self.name,
            recording=None if is_run else self.trace or conversation,
            trace=self.trace if is_run else None,
            calls=self.calls,
            task=self.task,
            inputs=self.inputs,
            examples=self.examples,
        )


class ReportOutcome(_Arguments):
    """Arguments of `report_outcome`."""

    trace_id: str = Field(description=f"Of the result, or its _meta {TRACE_META_KEY}.")
    passed: bool = Field(description="Whether the result was right.")
    detail: str = Field(default="", description="What was right or wrong, in words.")


def input_schema(model: type[BaseModel]) -> JsonSchema:
    """Return the portable JSON Schema of a model's arguments, required ones first.

    It has no nulls, titles or references.
    """
    schema = model.model_json_schema(schema_generator=_PortableSchema)
    required: list[str] = schema.get("required", [])
    properties: dict[str, JsonValue] = schema["properties"]
    return {
        "type": "object",
        "properties": {
            name: properties[name] for name in sorted(properties, key=lambda n: n not in required)
        },
        "required": list(required),
        "additionalProperties": False,
    }


class _PortableSchema(GenerateJsonSchema):
    """An optional argument is left out, never null; a title that repeats the name is noise."""

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        if not schema.get("default", ...):  # what is left out then says nothing by itself
            return self.generate_inner(schema["schema"])
        return super().default_schema(schema)

    def field_title_should_be_set(self, schema: object) -> bool:  # noqa: ARG002  (the library's hook)
        return False
