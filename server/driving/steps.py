"""One step of a driven model: the JSON it answers with, and how it is read.

A step calls a tool or a skill by its label, or one of two words of ours: `finish` with the outputs, and
`recall` to see a result again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import cast

from pydantic import JsonValue

from catalog.tools import JsonSchema

__all__ = ["FINISH", "RECALL", "RULES", "Step", "read_step", "step_schema"]

FINISH, RECALL = "finish", "recall"
_FENCE = re.compile(r"^```\w*\n|\n```\s*$")

RULES = """\
You solve a task step by step. Each answer is one JSON object:
{{{thought}"tool": NAME, "arguments": {{...}}}}
The answer of a call is named r1, r2, ... Pass values on by reference: "$r1" is the whole answer,
"$r1#/total" one part of it, "$inputs.NAME" an input of the task. Write a value yourself only if the task
says it. Two names are not tools:
- finish: the task is done; its arguments are the outputs, each a reference.
- recall: {{"result": "r1", "pointer": "/items/0"}} shows an earlier answer, or a part of it, again.
You may add "plan": "..." to say what you will do next.
A whole task: {{{thought}"tool": "add", "arguments": {{"a": 2, "b": 3}}}} gives r1: {{"sum": 5}};
then {{{thought}"tool": "finish", "arguments": {{"total": "$r1#/sum"}}}} ends it.
"""


@dataclass(frozen=True, slots=True)
class Step:
    """What a model wants done."""

    tool: str
    arguments: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    thought: str = ""
    plan: str = ""

    @property
    def action(self) -> str:
        """The step as the model reads it later, without its thought."""
        return json.dumps({"tool": self.tool, "arguments": self.arguments}, ensure_ascii=False)


def step_schema(labels: Iterable[str], *, with_thought: bool, without: str | None = None) -> JsonSchema:
    """Return the schema of an answer: its tool is one of the labels, or a word of ours.

    Args:
        labels: of what can be called.
        with_thought: whether a thought is demanded.
        without: a label that is not to be taken now.
    """
    thought: dict[str, JsonValue] = {"thought": {"type": "string", "maxLength": 300}} if with_thought else {}
    names: list[JsonValue] = [*(label for label in labels if label != without), FINISH, RECALL]
    properties: dict[str, JsonValue] = {
        **thought,
        "tool": {"type": "string", "enum": names},
        "arguments": {"type": "object"},
    }
    return {
        "type": "object",
        "properties": {**properties, "plan": {"type": "string", "maxLength": 300}},
        "required": [*properties],
        "additionalProperties": False,
    }


def read_step(text: str) -> Step | str:
    """Return the step that an answer is, or in words why it is none."""
    said = _FENCE.sub("", text.strip())
    start = said.find("{")
    if start < 0:
        return "an answer is one JSON object with tool and arguments"
    try:
        value, _ = json.JSONDecoder().raw_decode(said[start:])
    except ValueError as error:
        return f"the JSON ends or breaks: {error}"
    answer = cast("dict[str, JsonValue]", value)
    tool, arguments = answer.get("tool"), answer.get("arguments", {})
    if not isinstance(tool, str) or not tool:
        return 'the object has no "tool", the name of what is to be called'
    if not isinstance(arguments, dict):
        return '"arguments" is an object'
    thought, plan = answer.get("thought"), answer.get("plan")
    return Step(
        tool, arguments, thought if isinstance(thought, str) else "", plan if isinstance(plan, str) else ""
    )
