"""A lesson in a model's words: it may say a template's lesson better, and add nothing to it.

Paper: AgentEvolver (an LLM writes and validates experience; facts §4.3). Differs: the model is shown the
lesson that a template made and never a tool's answer, and what it writes is checked by rule: it has to
name every tool, hold no address, and quote no answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import cast

from pydantic import JsonValue

from catalog.plain_text import plain_text
from server.backends.backend import Completion, Message, Request
from server.planning.conversation import Conversation
from server.planning.leaves import leaves_of_value
from skills_store.experience.unit import ExperienceUnit
from skills_store.trace import Trace

__all__ = ["is_sound", "say_better"]

_LONGEST = 300
_QUOTED_WORDS = 4
_ADDRESS = re.compile(r"https?://|www\.|\S+@\S+\.\w+", re.IGNORECASE)
_SCHEMA: dict[str, JsonValue] = {
    "type": "object",
    "properties": {"content": {"type": "string"}},
    "required": ["content"],
    "additionalProperties": False,
}


def say_better(unit: ExperienceUnit, trace: Trace) -> Conversation[ExperienceUnit]:
    """Ask a model to word a lesson; return it as it was where the answer is not sound.

    Yields: one request at temperature 0.
    """
    asked = (
        "Rewrite this lesson about tool calls in one short sentence that helps with the next such task."
        " Keep every tool's name exactly; add no facts.\n\n"
        f"When: {unit.when_to_use}\nLesson: {unit.content}\n\n"
        'Answer as JSON: {"content": "..."}'
    )
    completion: Completion = yield Request(
        (Message("user", asked),), schema=_SCHEMA, schema_name="lesson", max_output_tokens=200
    )
    try:
        answer = cast("JsonValue", json.loads(completion.text))
    except ValueError:
        return unit
    said = answer.get("content") if isinstance(answer, dict) else None
    if not isinstance(said, str) or not is_sound(said, unit, trace):
        return unit
    return unit.model_copy(update={"content": plain_text(said, _LONGEST), "written_by": "model"})


def is_sound(said: str, unit: ExperienceUnit, trace: Trace) -> bool:
    """Return whether a sentence names the tools, holds no address, and quotes no answer of a tool."""
    named = all(tool.tool in said for tool in unit.tools)
    if not said.strip() or len(said) > _LONGEST or not named or _ADDRESS.search(said):
        return False
    own = set(_runs(f"{unit.when_to_use} {unit.content}"))
    answers = (run for step in trace.steps for text in _texts(step.output) for run in _runs(text))
    return not (set(_runs(said)) - own) & set(answers)


def _texts(output: JsonValue) -> Iterable[str]:
    return [leaf.value for leaf in leaves_of_value(output) if isinstance(leaf.value, str)]


def _runs(text: str) -> list[tuple[str, ...]]:
    said = re.findall(r"\w+", text.lower())
    return [tuple(said[i : i + _QUOTED_WORDS]) for i in range(len(said) - _QUOTED_WORDS + 1)]
