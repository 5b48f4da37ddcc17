"""Asking a model which earlier results it still needs, and reading what it says.

Paper: AgentEvolver (self-context-managing template; facts §4.5). Differs: asked once for each result; its
own words stand for what it compresses, so that there is no second call; without a usable answer results
are cleared as in `window`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import cast

from pydantic import JsonValue

from catalog.tools import JsonSchema
from server.backends.backend import Message, Request
from server.context.events import Decision, Selection
from server.context.messages import Spoken
from server.driving.options import DriveOptions

__all__ = ["read_selection", "tidy_request"]

_DECISIONS: tuple[Decision, ...] = ("keep", "compress", "drop")


def tidy_request(shown: Sequence[Spoken], names: Iterable[str], options: DriveOptions) -> Request:
    """Return the request to decide about results.

    Args:
        shown: the conversation so far.
        names: of the results.
        options: bounds of an answer.
    """
    asked = (
        f"The conversation gets too long. For each of {', '.join(names)} say whether you still need it: keep,"
        ' compress (with a summary) or drop. Answer {"decisions": [{"id": "r1", "action": "drop"}, ...]}.'
        " What is dropped can be recalled."
    )
    messages = [one.message for one in shown]
    if messages[-1].role == "user":
        messages[-1] = Message("user", f"{messages[-1].text}\n{asked}")
    else:
        messages.append(Message("user", asked))
    return Request(
        messages=tuple(messages),
        schema=_schema(),
        schema_name="decisions",
        max_output_tokens=options.answer_tokens,
        deadline_seconds=options.deadline_seconds,
    )


def _schema() -> JsonSchema:
    one: JsonSchema = {
        "type": "object",
        "properties": {
            "id": {"type": "string"},
            "action": {"type": "string", "enum": list(_DECISIONS)},
            "summary": {"type": "string", "maxLength": 300},
        },
        "required": ["id", "action"],
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "properties": {"decisions": {"type": "array", "items": one}},
        "required": ["decisions"],
        "additionalProperties": False,
    }


def read_selection(text: str, names: Iterable[str]) -> Selection:
    """Return what a model decided, as far as it can be read: of results it was asked about, each once."""
    start = text.find("{")
    try:
        value = cast("JsonValue", json.JSONDecoder().raw_decode(text[start:])[0]) if start >= 0 else None
    except ValueError:
        return Selection(())
    listed = value.get("decisions") if isinstance(value, dict) else None
    decisions: dict[str, Decision] = {}
    summaries: dict[str, str] = {}
    asked = set(names)
    for one in listed if isinstance(listed, list) else ():
        name = one.get("id") if isinstance(one, dict) else None
        if not isinstance(one, dict) or not isinstance(name, str) or name not in asked:
            continue
        action, summary = one.get("action"), one.get("summary")
        if action in _DECISIONS:
            decisions[name] = action
        if isinstance(summary, str) and summary:
            summaries[name] = summary
    return Selection(tuple(decisions.items()), tuple(summaries.items()))
