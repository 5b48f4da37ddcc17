"""The arguments of the always-there tools: one model per tool is its schema and its parser.

Checking a client's arguments against a schema, ours or a skill's, is `validation`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, WithJsonSchema
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from catalog.tools import JsonSchema, ToolId
from server.context.policy import TEMPLATES, ContextPolicy, Template
from server.driving.options import DriveOptions
from server.requests import Budget, RepairRequest, SaveRequest, SolveRequest
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
    "SolveOptions",
    "grouped",
    "input_schema",
]

_BUDGET = Budget()
_DRIVE = DriveOptions()

_TEXT: JsonSchema = {"type": "string"}
_STRINGS: JsonSchema = {"type": "array", "items": {"type": "string"}}
_ANY_OBJECT: JsonSchema = {"type": "object"}
# What a model reads of a workflow is short: all lists of tools together have a bound. The document
# itself is checked by its parser, which names each fault with its place.
_NODE: JsonSchema = {
    "type": "object",
    "properties": {
        "id": _TEXT,
        "tool": {
            "type": "object",
            "properties": {"server": _TEXT, "tool": _TEXT},
            "required": ["server", "tool"],
        },
        "skill": {"type": "object", "description": "Instead: {name, version}"},
        "arguments": {
            "type": "object",
            "description": "Literals or whole strings $inputs.name, $nodes.id.output#/pointer, $item",
        },
        "for_each": {"anyOf": [_TEXT, _ANY_OBJECT], "description": "List: runs for each $item"},
        "when": {"anyOf": [_TEXT, _ANY_OBJECT, {"type": "boolean"}], "description": "False skips it"},
        "after": _STRINGS,
        "expect": _STRINGS,
    },
    "required": ["id"],
}
_WORKFLOW: JsonSchema = {
    "type": "object",
    "description": "Document.",
    "properties": {
        "name": _TEXT,
        "inputs": {"type": "object", "description": "JSON Schema"},
        "nodes": {"type": "array", "items": _NODE},
        "outputs": {"type": "object", "description": "Name to reference"},
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

    inputs: Values = Field(default_factory=dict, description="By name.")
    assertions: tuple[str, ...] = Field(
        default=(),
        description="JMESPath: output.total > `0`",
    )
    output_schema: Values = Field(default_factory=dict, description="Of outputs.")
    detail: bool = Field(
        default=False,
        description="Return every step.",
    )

    @property
    def checks(self) -> Checks:
        """What counts as right."""
        return Checks(assertions=self.assertions, schema=dict(self.output_schema) or None)


class _Kept(_Checked):
    """Arguments of what may leave a skill behind."""

    save_as: str | None = Field(
        default=None,
        pattern=r"^[a-z][a-z0-9_]{0,39}$",
        description="Skill to keep.",
    )


class SolveOptions(_Arguments):
    """Arguments of `solve` that are seldom given: one object, since the list of tools has a bound."""

    budget_seconds: float = Field(default=_BUDGET.seconds, ge=0)
    budget_calls: int = Field(default=_BUDGET.calls, ge=0)
    budget_tokens: int = Field(default=_BUDGET.tokens, ge=0)
    """Of the model."""
    answer: bool = False
    """In words too."""
    judge: bool = False
    """Have it scored."""
    driver: Literal["react"] | None = None
    """How the model works step by step, None: it plans the whole."""
    context: Template = _DRIVE.policy.template
    """What a driven model is shown."""
    steps: int = Field(default=_DRIVE.steps, ge=1)
    """Answers of a driven model at most."""

    @property
    def drive(self) -> DriveOptions | None:
        """How the model is driven, None: it plans."""
        if self.driver is None:
            return None
        return DriveOptions(steps=self.steps, policy=ContextPolicy(self.context))


_NOT_NEGATIVE: JsonSchema = {"type": "integer", "minimum": 0}
_SOLVE_OPTIONS: JsonSchema = {
    "type": "object",
    "properties": {
        "budget_seconds": {"type": "number", "minimum": 0},
        "budget_calls": _NOT_NEGATIVE,
        "budget_tokens": _NOT_NEGATIVE,
        "answer": {"type": "boolean"},
        "judge": {"type": "boolean"},
        "driver": {"enum": ["react"]},
        "context": {"enum": list(TEMPLATES)},
        "steps": {"type": "integer", "minimum": 1},
    },
    "additionalProperties": False,
}
_ONCE_ALONE = frozenset({"budget_seconds", "budget_calls", "budget_tokens", "answer", "judge"})


class Solve(_Kept):
    """Arguments of `solve`."""

    task: str = Field(min_length=1, description="With every value it needs.")
    options: Annotated[SolveOptions, WithJsonSchema(_SOLVE_OPTIONS)] = Field(
        default_factory=SolveOptions, description="driver react: call by call."
    )

    @property
    def budget(self) -> Budget:
        """What the search may spend."""
        own = self.options
        return Budget(seconds=own.budget_seconds, calls=own.budget_calls, tokens=own.budget_tokens)

    def request(self) -> SolveRequest:
        """Return the use case's request."""
        return SolveRequest(
            inputs=self.inputs,
            checks=self.checks,
            budget=self.budget,
            save=self.save_as,
            answer=self.options.answer,
            judge=self.options.judge,
            drive=self.options.drive,
        )


def grouped(tool: str, arguments: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return the arguments, those that `solve` once listed by themselves among its options.

    Hosts keep lists of tools for long, and go on calling by the one they have.
    """
    options = arguments.get("options", {})
    alone = _ONCE_ALONE & set(arguments) if tool == "solve" else set[str]()
    if not alone or not isinstance(options, dict):
        return dict(arguments)
    moved = {name: arguments[name] for name in sorted(alone) if arguments[name] is not None}
    kept = {name: value for name, value in arguments.items() if name not in alone}
    return {**kept, "options": {**moved, **options}}


class RunWorkflow(_Checked):
    """Arguments of `run_workflow`."""

    workflow: Document


class RepairWorkflow(_Kept):
    """Arguments of `repair_workflow`."""

    budget_seconds: float = Field(default=_BUDGET.seconds, ge=0, description="Time.")
    budget_calls: int = Field(default=_BUDGET.calls, ge=0, description="Calls.")

    workflow: Draft = Field(description="As for run_workflow.")
    task: str | None = Field(default=None, description="What it is for.")

    @property
    def budget(self) -> Budget:
        """What the search may spend."""
        return Budget(seconds=self.budget_seconds, calls=self.budget_calls)

    def request(self) -> RepairRequest:
        """Return the use case's request."""
        return RepairRequest(
            task=self.task, inputs=self.inputs, checks=self.checks, budget=self.budget, save=self.save_as
        )


class _Query(_Arguments):
    query: str = Field(min_length=1, description="What it should do.")
    limit: int = Field(default=10, ge=1, le=50, description="Most hits.")


class FindSkills(_Query):
    """Arguments of `find_skills`."""


class FindTools(_Query):
    """Arguments of `find_tools`."""


class DescribeSkill(_Arguments):
    """Arguments of `describe_skill`."""

    name: str = Field(description="Skill.")
    version: int | None = Field(default=None, ge=1, description="Default: current.")


class CallSkill(DescribeSkill):
    """Arguments of `call_skill`."""

    arguments: Values = Field(default_factory=dict, description="By name.")


class CallTool(_Arguments):
    """Arguments of `call_tool`."""

    server: str = Field(description="Server.")
    tool: str = Field(description="Tool.")
    arguments: Values = Field(default_factory=dict, description="By its schema.")
    trace: str | None = Field(
        default=None,
        min_length=1,
        max_length=100,
        description="Groups calls.",
    )

    @property
    def id(self) -> ToolId:
        """The tool that is meant."""
        return ToolId(self.server, self.tool)


class SaveSkill(_Arguments):
    """Arguments of `save_skill`."""

    name: str = Field(pattern="^[a-z][a-z0-9_]{0,39}$", description="Its name.")
    trace: str | None = Field(
        default=None,
        description="trace_id or trace. Default: this connection.",
    )
    calls: tuple[int, ...] = Field(default=(), description="Only these, from 1.")
    task: str | None = Field(default=None, description="Values it says become inputs.")
    inputs: Values = Field(
        default_factory=dict,
        description='Become inputs: {"city": "Oslo"}',
    )
    examples: tuple[Values, ...] = Field(default=(), description="Other inputs.")

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

    trace_id: str = Field(description="Of a result, or in its _meta.")
    passed: bool = Field(description="Was it right?")
    detail: str = Field(default="", description="In words.")


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
