"""Planning in two stages, for models that hold little: choose the tools, then fill each call.

The first question shows every tool in a line; each later one shows one tool in full and the exact
references there are. All questions are one growing conversation, so that a prompt cache holds.
Where a stage is unreadable, what was understood so far becomes the plan and its faults are told.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pydantic import JsonValue

from catalog.tools import Tool
from server.backends.backend import Completion, Message, Request
from server.planning.answer_json import NotJson, read_json
from server.planning.catalog_view import CatalogView, render_tool
from server.planning.conversation import Conversation
from server.planning.leaves import leaves_of_schema
from server.planning.plan_reading import PlanReading, read_plan
from server.planning.plan_schema import MOST_NODES, arguments_schema, choice_schema, output_types
from server.planning.spoken_tools import Vocabulary
from skills_store.experience.spans import ExperienceSpan
from skills_store.workflow.faults import Malformed
from skills_store.workflow.references import pointer_parts

__all__ = ["StageSettings", "plan_in_two_stages"]

_RULES = """\
You plan tool calls in two steps. First you name the tools to call, in order: {"tools":["NAME",...]}. \
Name a tool once for each call of it, so twice for two calls, and none that the request does not ask for. \
Then, for each call, you give its arguments: {"arguments":{...}}. \
Take values from the request exactly as it says them; to use what an earlier call answered, write \
its reference, such as "$n1.field", as the whole value. Answer with JSON and nothing else."""

_MOST_REFERENCES = 24


@dataclass(frozen=True, slots=True)
class StageSettings:
    """How each turn is asked."""

    temperature: float | None
    deadline_seconds: float
    max_output_tokens: int = 300
    experience: tuple[ExperienceSpan, ...] = ()


def plan_in_two_stages(
    view: CatalogView,
    asked: str,
    vocabulary: Vocabulary,
    settings: StageSettings,
    experience: tuple[ExperienceSpan, ...] = (),
) -> Conversation[PlanReading]:
    """Ask for the tools, then for the arguments of each call, and return the plan they make.

    Args:
        view: the tools, in little detail.
        asked: the task as `prompt.task_text` puts it, with what is known besides.
        vocabulary: what answers may speak of.
        settings: of every turn.
        experience: where lessons stand in what is asked, which is message 1 of every turn.
    """
    settings = replace(settings, experience=experience)
    tools = view.by_label
    messages = (
        Message("system", f"{_RULES}\n\nTools:\n{view.text}"),
        Message("user", f"{asked}\nWhich tools, in order?"),
    )
    completion = yield _request(messages, choice_schema(tools), settings)
    labels, why = _choices(completion)
    if not labels:
        return PlanReading(None, (Malformed(message=why),))
    messages = (*messages, Message("assistant", json.dumps({"tools": labels})))
    nodes: list[JsonValue] = []
    faults: list[Malformed] = []
    for place, label in enumerate(labels, 1):
        tool = tools.get(label) or vocabulary.world.snapshot.get(vocabulary.tool(label))
        earlier = _references(labels[: place - 1], tools)
        question = Message("user", _question(place, label, tool, earlier))
        schema = _filled_schema(tool, earlier, labels[: place - 1], vocabulary, tools)
        completion = yield _request((*messages, question), schema, settings)
        arguments, why = _arguments(completion)
        if why:
            faults.append(Malformed(message=f"call n{place} ({label}): {why}", node=f"n{place}"))
        nodes.append({"tool": label, "id": f"n{place}", "arguments": arguments})
        messages = (*messages, question, Message("assistant", json.dumps({"arguments": arguments})))
    reading = read_plan(json.dumps({"nodes": nodes}), vocabulary)
    return PlanReading(reading.workflow, (*faults, *reading.faults))


def _request(messages: tuple[Message, ...], schema: dict[str, JsonValue], settings: StageSettings) -> Request:
    return Request(
        messages=messages,
        schema=schema,
        schema_name="plan",
        temperature=settings.temperature,
        max_output_tokens=settings.max_output_tokens,
        deadline_seconds=settings.deadline_seconds,
        experience=settings.experience,
    )


def _choices(completion: Completion) -> tuple[list[str], str]:
    """Return the tools that were chosen, and what was wrong when there are none."""
    try:
        document = read_json(completion.text)
    except NotJson as error:
        return [], str(error)
    chosen = document.get("tools") if isinstance(document, dict) else document
    names = [name for name in chosen if isinstance(name, str)] if isinstance(chosen, list) else []
    return names[:MOST_NODES], "" if names else 'no tool was named: expected {"tools": ["NAME"]}'


def _arguments(completion: Completion) -> tuple[dict[str, JsonValue], str]:
    try:
        document = read_json(completion.text)
    except NotJson as error:
        return {}, str(error)
    if not isinstance(document, dict):
        return {}, "the arguments are an object by name"
    inner = document.get("arguments", document)
    return (inner, "") if isinstance(inner, dict) else ({}, "the arguments are an object by name")


def _question(place: int, label: str, tool: Tool | None, earlier: Sequence[str]) -> str:
    signature = render_tool(tool, label) if tool else label
    readable = ", ".join(earlier) or "none"
    return f"Call n{place}: {signature}\nReferences there are: {readable}\nIts arguments?"


def _references(labels: Sequence[str], tools: Mapping[str, Tool]) -> list[str]:
    """Return what the calls so far let a later one read, the latest first."""
    found: list[str] = []
    for place in range(len(labels), 0, -1):
        tool = tools.get(labels[place - 1])
        leaves = leaves_of_schema(tool.output_schema) if tool and tool.output_schema else []
        paths = [".".join(pointer_parts(leaf.pointer)) for leaf in leaves if leaf.pointer]
        found += [f"$n{place}.{path}" for path in paths] or [f"$n{place}.result", f"$n{place}"]
    return found[:_MOST_REFERENCES]


def _filled_schema(
    tool: Tool | None,
    earlier: Sequence[str],
    before: Sequence[str],
    vocabulary: Vocabulary,
    tools: Mapping[str, Tool],
) -> dict[str, JsonValue]:
    """Return the schema of one call's arguments: references only to what is there, of a type that fits."""
    inputs = [f"$inputs.{name}" for name in vocabulary.world.inputs]
    given = [output_types(tools[label]) for label in before if label in tools]
    readable = frozenset[str]().union(*given)
    if inputs:
        readable |= {"string", "number", "integer", "boolean", "array", "object"}
    arguments: dict[str, JsonValue] = {"type": "object"}
    if tool is not None:
        arguments = arguments_schema(tool, readable, [*earlier, *inputs])
    return {
        "type": "object",
        "properties": {"arguments": arguments},
        "required": ["arguments"],
        "additionalProperties": False,
    }
