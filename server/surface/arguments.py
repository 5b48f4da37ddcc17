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
        "id": {"type": "string", "description": "Unique id: lower-case letters, digits, underscores."},
        "tool": {
            "type": "object",
            "description": "The upstream tool to call, as find_tools names it.",
            "properties": {"server": _TEXT, "tool": _TEXT},
            "required": ["server", "tool"],
        },
        "skill": {
            "type": "object",
            "description": "Instead of tool: a skill to call.",
            "properties": {"name": _TEXT, "version": {"type": "integer"}},
            "required": ["name", "version"],
        },
        "arguments": {
            **_ANY_OBJECT,
            "description": "Literals, or references as whole strings: $inputs.name, $nodes.id.output, "
            "$item, each with an optional #/json/pointer.",
        },
        "for_each": {
            "anyOf": [_TEXT, _ANY_OBJECT],
            "description": "Reference or selector that yields a list: the node runs once for each $item.",
        },
        "when": {
            "anyOf": [_TEXT, _ANY_OBJECT, {"type": "boolean"}],
            "description": "Reference or selector that yields a boolean: false skips the node.",
        },
        "after": {**_STRINGS, "description": "Ids of nodes to wait for without using their output."},
        "expect": {**_STRINGS, "description": "Assertions over output, inputs and nodes."},
        "timeout_seconds": {"type": "number"},
    },
    "required": ["id"],
}
_WORKFLOW: JsonSchema = {
    "type": "object",
    "description": "The workflow document. Data flows by references; edges follow from them.",
    "properties": {
        "name": _TEXT,
        "description": _TEXT,
        "inputs": {**_ANY_OBJECT, "description": "JSON Schema of the inputs, with type object."},
        "nodes": {"type": "array", "items": _NODE},
        "outputs": {
            **_ANY_OBJECT,
            "description": 'Name to reference, such as {"total": "$nodes.add.output#/sum"}.',
        },
        "expect": {**_STRINGS, "description": "Assertions that the outputs must meet."},
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

    inputs: Values = Field(default_factory=dict, description="Values of the workflow's inputs by name.")
    assertions: tuple[str, ...] = Field(
        default=(),
        description="JMESPath conditions that must hold, over output (the outputs), inputs and nodes. "
        "Example: output.total > `0`",
    )
    output_schema: Values = Field(default_factory=dict, description="JSON Schema the outputs must fit.")
    detail: bool = Field(
        default=False,
        description="Also return every executed step and every candidate tried; this can be long.",
    )

    @property
    def checks(self) -> Checks:
        """What counts as right."""
        return Checks(assertions=self.assertions, schema=dict(self.output_schema) or None)


class _Searching(_Checked):
    """Arguments of a search: what it may spend, and what it leaves behind."""

    budget_seconds: float = Field(default=_BUDGET.seconds, ge=0, description="Longest search time.")
    budget_calls: int = Field(default=_BUDGET.calls, ge=0, description="Most upstream calls.")
    save_as: str | None = Field(
        default=None,
        pattern=r"^[a-z][a-z0-9_]{0,39}$",
        description="Save the verified result as a skill of this name, so that it becomes a tool.",
    )

    @property
    def budget(self) -> Budget:
        """What the search may spend."""
        return Budget(seconds=self.budget_seconds, calls=self.budget_calls)


class Solve(_Searching):
    """Arguments of `solve`."""

    task: str = Field(min_length=1, description="The task in words, with every value it needs.")
    budget_tokens: int = Field(
        default=_BUDGET.tokens,
        ge=0,
        description="Most tokens of a model that plans, where one is configured.",
    )
    answer: bool = Field(default=False, description="Also put the outputs into words.")
    judge: bool = Field(
        default=False, description="Also have a configured model score the run: advice, never proof."
    )

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

    workflow: Draft = Field(description="The workflow that fails, in the form that run_workflow takes.")
    task: str | None = Field(default=None, description="What the workflow is for, in words.")

    def request(self) -> RepairRequest:
        """Return the use case's request."""
        return RepairRequest(
            task=self.task, inputs=self.inputs, checks=self.checks, budget=self.budget, save=self.save_as
        )


class _Query(_Arguments):
    query: str = Field(min_length=1, description="What it should do, in words.")
    limit: int = Field(default=10, ge=1, le=50, description="Most hits to return.")


class FindSkills(_Query):
    """Arguments of `find_skills`."""


class FindTools(_Query):
    """Arguments of `find_tools`."""


class DescribeSkill(_Arguments):
    """Arguments of `describe_skill`."""

    name: str = Field(description="Name of the skill, as find_skills gives it.")
    version: int | None = Field(default=None, ge=1, description="A version; left out: the current one.")


class CallSkill(DescribeSkill):
    """Arguments of `call_skill`."""

    arguments: Values = Field(
        default_factory=dict, description="The skill's inputs by name, as describe_skill shows them."
    )


class CallTool(_Arguments):
    """Arguments of `call_tool`."""

    server: str = Field(description="Name of the tool server, as find_tools gives it.")
    tool: str = Field(description="Name of the tool on that server.")
    arguments: Values = Field(default_factory=dict, description="The tool's arguments, by its input_schema.")
    trace: str | None = Field(
        default=None,
        min_length=1,
        max_length=100,
        description="A name of your own for calls that belong together, so that save_skill can compile them."
        " Left out: those of this connection.",
    )

    @property
    def id(self) -> ToolId:
        """The tool that is meant."""
        return ToolId(self.server, self.tool)


class SaveSkill(_Arguments):
    """Arguments of `save_skill`."""

    name: str = Field(
        pattern="^[a-z][a-z0-9_]{0,39}$", description="Name of the skill: small letters, digits and _."
    )
    trace: str | None = Field(
        default=None,
        description="trace_id of a run, or the trace name you gave to call_tool."
        " Left out: the calls of this connection.",
    )
    calls: tuple[int, ...] = Field(
        default=(), description="Only these calls of it, numbered from 1 in the order they were made."
    )
    task: str | None = Field(
        default=None, description="The task in words; the values it says become the skill's inputs."
    )
    inputs: Values = Field(
        default_factory=dict,
        description='Values of the calls that become inputs, by the names they shall have: {"city": "Oslo"}.',
    )
    examples: tuple[Values, ...] = Field(
        default=(), description="Other values of those inputs, known to work; the skill is tried on them."
    )

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

    trace_id: str = Field(description=f"trace_id of the result, or its _meta entry {TRACE_META_KEY}.")
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
        if schema.get("default", ...) is None:
            return self.generate_inner(schema["schema"])
        return super().default_schema(schema)

    def field_title_should_be_set(self, schema: object) -> bool:  # noqa: ARG002  (the library's hook)
        return False
