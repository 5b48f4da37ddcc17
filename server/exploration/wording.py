"""A task in a person's words: by template from what the tools say of themselves, or by a model."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import cast

from pydantic import JsonValue

from catalog.plain_text import plain_text
from server.backends.backend import Completion, Message, Request
from server.exploration.distilling import Draft
from server.exploration.naming import key_name
from server.exploration.options import ExplorationOptions
from server.planning.conversation import Conversation
from skills_store.workflow.model import Node
from skills_store.workflow.references import parse_reference

__all__ = ["reword", "says_all", "word_task"]

_SENTENCE = re.compile(r"[.\n:;(]|\s-\s|\s—\s")
_LONGEST_PHRASE = 90
_VERB = re.compile(
    r"^(?:(?:this|the) tool |a tool (?:to|that|for) |tool (?:to|for) |used? (?:this )?to )", re.IGNORECASE
)
_TWO = re.compile(r"\b(?:the )?two (?:numbers|values|integers|strings|texts|dates|words)\b", re.IGNORECASE)
_JOINED = {"divide": " by ", "multiply": " by "}
_GOES_ON = r"$|,| (?:of|to|from|in|into|and|or|with|by|for|on|using|at|as|is|has|between)\b"
"""What may follow a noun that is one by itself: in "an email address" the email is not."""


def word_task(draft: Draft, inputs: Mapping[str, JsonValue]) -> str:
    """Return the task of a draft with these values, in plain sentences a person might type."""
    parts = [_clause(node, draft, inputs) for node in draft.workflow.nodes]
    first, *rest = parts
    text = first[:1].upper() + first[1:] + "".join(f", then {part}" for part in rest)
    asked = [f"the {name.replace('_', ' ')}" for name in draft.workflow.outputs]
    return f"{text}. Give me {_listed(asked)}."


def _clause(node: Node, draft: Draft, inputs: Mapping[str, JsonValue]) -> str:
    """Return what one step does: a value stands where the tool's own words speak of it, else after `with`."""
    step = next(s for s in draft.chain.steps if s.probe.tool.id == node.tool)
    phrase = _phrase(step.probe.tool.description, step.probe.tool.id.tool)
    given = dict(_given(node, inputs))
    if len(given) == 2 and _TWO.search(phrase):
        joined = _JOINED.get(phrase.split()[0], " and ").join(text for text, _ in given.values())
        return _TWO.sub(lambda _: joined, phrase, count=1)
    said: list[str] = []
    for name, (text, is_stated) in given.items():
        placed = _placed(phrase, name, text) if is_stated else ""
        phrase = placed or phrase
        if not placed:
            said.append(f"{name} {text}" if is_stated else f"{name} from {text}")
    return f"{phrase} with {_listed(said)}" if said else phrase


def _given(node: Node, inputs: Mapping[str, JsonValue]) -> Iterator[tuple[str, tuple[str, bool]]]:
    """Yield each argument's name with its value or the place it is read from, and whether it is stated."""
    for name, value in node.arguments.items():
        if isinstance(value, str) and value.startswith("$nodes."):
            key = parse_reference(value).pointer.rsplit("/", 1)[-1]
            yield _spoken(name), (f"the {_spoken(key_name(key))}", False)
        elif isinstance(value, str) and value.startswith("$inputs."):
            yield _spoken(name), (_value(inputs[parse_reference(value).name]), True)


def _placed(phrase: str, name: str, stated: str) -> str:
    """Return a phrase with a value after the words that speak of it, empty where none do."""
    speaks = (
        rf"\b(?:an?|the|your|this|some)(?: (?:given|provided|specified))? ({re.escape(name)})(?={_GOES_ON})"
    )
    found = re.search(speaks, phrase)
    if found is None:
        return ""
    return f"{phrase[: found.start()]}the {found[1]} {stated}{phrase[found.end() :]}"


def _phrase(description: str, name: str) -> str:
    sentence = _SENTENCE.split(plain_text(description).strip(), maxsplit=1)[0].strip()
    sentence = _VERB.sub("", sentence)
    words = sentence.split()
    if not words or len(sentence) > _LONGEST_PHRASE or not words[0].isalpha():
        return _spoken(name)
    return " ".join([_imperative(words[0].lower()), *words[1:]])


def _imperative(verb: str) -> str:
    """Return a verb as one asks for it: `computes` and `applies` become `compute` and `apply`."""
    if verb.endswith("ies") and len(verb) > 4:
        return f"{verb[:-3]}y"
    if verb.endswith(("ches", "shes", "sses", "xes", "zzes")):
        return verb[:-2]
    return verb[:-1] if verb.endswith("s") and not verb.endswith(("ss", "us", "is")) else verb


def _spoken(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name).replace("_", " ").lower().strip()


def _value(value: JsonValue) -> str:
    return f"'{value}'" if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _listed(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def says_all(text: str, inputs: Mapping[str, JsonValue]) -> bool:
    """Return whether a text says every value, so that somebody could solve the task from it."""
    return all(
        _says(text, part)
        for value in inputs.values()
        for part in (value if isinstance(value, list) else [value])
    )


def _says(text: str, value: JsonValue) -> bool:
    """Return whether a text says a value by itself, not as a part of a longer word or number."""
    said = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    before, after = (
        r"(?<![\w.-])" if said[:1].isalnum() else "",
        r"(?!\w|\.\d)" if said[-1:].isalnum() else "",
    )
    return re.search(f"{before}{re.escape(said)}{after}", text) is not None


def reword(
    text: str, inputs: Mapping[str, JsonValue], options: ExplorationOptions
) -> Conversation[str | None]:
    """Ask a model to say a task as a person would; None where its answer leaves a value out.

    Yields: one request at high temperature.
    """
    wish = f" Style: {options.style}." if options.style else ""
    who = f" That person: {options.background}" if options.background else ""
    asked = (
        "Rewrite this task as a person would ask for it, in one or two sentences, without naming any tool."
        f" Keep every value exactly as it is written.{wish}{who}\n\n{text}"
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
