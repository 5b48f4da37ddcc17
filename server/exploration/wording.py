"""A task in a person's words: by template from what the tools say of themselves, or by a model."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import cast

from pydantic import JsonValue

from catalog.plain_text import plain_text
from server.backends.backend import Completion, Message, Request
from server.exploration.distilling import Draft
from server.planning.conversation import Conversation
from skills_store.workflow.model import Node
from skills_store.workflow.references import parse_reference

__all__ = ["reword", "says_all", "word_task"]

_SENTENCE = re.compile(r"[.\n:;(]|\s-\s|\s—\s")
_LONGEST_PHRASE = 90
_VERB = re.compile(
    r"^(?:(?:this|the) tool |a tool (?:to|that|for) |tool (?:to|for) |used? (?:this )?to )", re.IGNORECASE
)


def word_task(draft: Draft, inputs: Mapping[str, JsonValue]) -> str:
    """Return the task of a draft with these values, in plain sentences a person might type."""
    parts = [_clause(node, draft, inputs) for node in draft.workflow.nodes]
    first, *rest = parts
    text = first[:1].upper() + first[1:] + "".join(f", then {part}" for part in rest)
    asked = [name.replace("_", " ") for name in draft.workflow.outputs]
    return f"{text}. Give {_listed(asked)}."


def _clause(node: Node, draft: Draft, inputs: Mapping[str, JsonValue]) -> str:
    step = next(s for s in draft.chain.steps if s.probe.tool.id == node.tool)
    phrase = _phrase(step.probe.tool.description, step.probe.tool.id.tool)
    said: list[str] = []
    for name, value in node.arguments.items():
        if isinstance(value, str) and value.startswith("$nodes."):
            source = parse_reference(value)
            said.append(f"{_spoken(name)} from the {_spoken(source.pointer.rsplit('/', 1)[-1] or 'result')}")
        elif isinstance(value, str) and value.startswith("$inputs."):
            said.append(f"{_spoken(name)} {_value(inputs[parse_reference(value).name])}")
    return f"{phrase} with {_listed(said)}" if said else phrase


def _phrase(description: str, name: str) -> str:
    sentence = _SENTENCE.split(plain_text(description).strip(), maxsplit=1)[0].strip()
    sentence = _VERB.sub("", sentence)
    words = sentence.split()
    if not words or len(sentence) > _LONGEST_PHRASE or not words[0].isalpha():
        return _spoken(name)
    verb = words[0].lower()
    verb = verb[:-1] if verb.endswith("s") and not verb.endswith(("ss", "us")) else verb
    return " ".join([verb, *words[1:]])


def _spoken(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name).replace("_", " ").lower().strip()


def _value(value: JsonValue) -> str:
    return f"'{value}'" if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _listed(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def says_all(text: str, inputs: Mapping[str, JsonValue]) -> bool:
    """Return whether a text says every value, so that somebody could solve the task from it."""
    return all(
        str(part) in text
        for value in inputs.values()
        for part in (value if isinstance(value, list) else [value])
    )


def reword(text: str, inputs: Mapping[str, JsonValue], style: str) -> Conversation[str | None]:
    """Ask a model to say a task as a person would; None where its answer leaves a value out.

    Yields: one request at high temperature.
    """
    wish = f" Style: {style}." if style else ""
    asked = (
        "Rewrite this task as a person would ask for it, in one or two sentences, without naming any tool."
        f" Keep every value exactly as it is written.{wish}\n\n{text}"
    )
    schema: dict[str, JsonValue] = {
        "type": "object",
        "properties": {"task": {"type": "string"}},
        "required": ["task"],
        "additionalProperties": False,
    }
    shown = f'{asked}\n\nAnswer as JSON: {{"task": "..."}}'
    completion: Completion = yield Request(
        (Message("user", shown),), schema=schema, schema_name="task", temperature=1.0, max_output_tokens=300
    )
    try:
        answer = cast("JsonValue", json.loads(completion.text))
    except ValueError:
        return None
    said = answer.get("task") if isinstance(answer, dict) else None
    return said.strip() if isinstance(said, str) and says_all(said, inputs) else None
