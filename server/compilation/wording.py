"""Words a model finds for a skill: what it is shown, what is taken of its answer, what stays rendered.

What can be shown is a value of this module, made of the workflow, its border and the task alone. Of
those, too, only what the client or the catalog says gets in: no constant and no name of an output that
the task does not say, no pointer into an answer, no selector, nothing observed. Who is asked and when
is `server.bank.admission.wording`; the rendered text is `prose`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from catalog.plain_text import plain_text
from catalog.tools import JsonSchema
from server.backends.backend import Message, Request
from server.compilation.places import literal_places
from server.planning.answer_json import NotJson, read_json
from server.planning.literals import mentions
from skills_store.skill import Guidance, Signature
from skills_store.workflow.model import Node, Workflow
from skills_store.workflow.references import find_references

__all__ = ["Facts", "Words", "WordsRefused", "facts_of", "read_words", "words_request"]

_LONGEST_TASK = 1_000
_MOST_STEPS = 20
_LONGEST_VALUE = 60
_LONGEST_TITLE = 60
_LONGEST_SUMMARY = 200
_LONGEST_LINE = 160
_MOST_LINES = 3
_ANSWER_TOKENS = 400
_DEADLINE_SECONDS = 60.0
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,59}")
_MARKUP = re.compile(r"[`*<>\[\]{}|#$\\]|https?:|www\.|://")
_FIGURE = re.compile(r"\d+")
_STRING: JsonSchema = {"type": "string"}
_LINES: JsonSchema = {"type": "array", "items": _STRING, "maxItems": _MOST_LINES}
_SCHEMA: JsonSchema = {
    "type": "object",
    "properties": {
        "title": _STRING,
        "summary": _STRING,
        "when_to_use": _STRING,
        "when_not": _LINES,
        "pitfalls": _LINES,
    },
    "required": ["title", "summary", "when_to_use", "when_not", "pitfalls"],
    "additionalProperties": False,
}
_SYSTEM = f"""\
You write the words beside a tool, for a small language model that must decide whether to call it.
You are shown the task it was made for, its inputs and the calls it makes. Say only what follows from
these. The values of the task are those of one case: the tool is for all of its kind.
Answer with one JSON object:
  title: two to five words that name what it does
  summary: one sentence, at most {_LONGEST_SUMMARY} characters: what it does, beginning with a verb
  when_to_use: one sentence: which tasks it is for
  when_not: up to {_MOST_LINES} sentences, [] where nothing follows: which near tasks it is not for
  pitfalls: up to {_MOST_LINES} sentences, [] where nothing follows: what to mind about its inputs
Plain text: no markup, no links, no figures that you are not shown."""


class WordsRefused(ValueError):  # noqa: N818
    """An answer has no words that can be kept; the message says why."""


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything of a skill that a model that words it is shown. Only `facts_of` makes one."""

    task: str
    inputs: tuple[str, ...]
    steps: tuple[str, ...]
    outputs: tuple[str, ...]

    def told(self) -> str:
        """Return the facts as they are shown."""
        lines = (
            f"Task: {self.task or 'none was stated'}",
            f"Inputs: {', '.join(self.inputs) or 'none'}",
            "Calls:",
            *(f"{number}. {step}" for number, step in enumerate(self.steps, 1)),
            f"Gives: {', '.join(self.outputs) or 'nothing'}",
        )
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Words:
    """What a model said of a skill, cleaned and bounded; an empty part was not usable."""

    title: str = ""
    summary: str = ""
    when_to_use: str = ""
    when_not: tuple[str, ...] = ()
    pitfalls: tuple[str, ...] = ()

    def described(self, rendered: str) -> str:
        """Return the rendered description with the summary before it: what is derived always stays."""
        return f"{self.summary.rstrip('.')}. {rendered}" if self.summary else rendered

    def guided(self, rendered: Guidance) -> Guidance:
        """Return the rendered guidance with what was said added; nothing rendered is left out."""
        return Guidance(
            when_to_use=f"{self.when_to_use.rstrip('.')}. {rendered.when_to_use}"
            if self.when_to_use
            else rendered.when_to_use,
            when_not=(*rendered.when_not, *self.when_not),
            pitfalls=(*rendered.pitfalls, *self.pitfalls),
        )


def facts_of(workflow: Workflow, signature: Signature, task: str | None) -> Facts:
    """Return what may be shown of a skill.

    Differs: FlowEvo's writer sees the trace; here what a tool answered cannot be passed in, and what
    may have been copied out of an answer (constants, names of outputs) is shown where the task says it.
    """
    said = plain_text(task or "", _LONGEST_TASK)
    shown = [_step(node, workflow, said) for node in workflow.nodes[:_MOST_STEPS]]
    more = len(workflow.nodes) - len(shown)
    return Facts(
        task=" ".join(said.split()),
        inputs=tuple(_fields(signature.input_schema, None)),
        steps=(*shown, *([f"and {more} more"] if more > 0 else [])),
        outputs=tuple(_fields(signature.output_schema, said)),
    )


def _fields(schema: Mapping[str, JsonValue], task: str | None) -> Iterator[str]:
    """Yield names and types; of outputs (with a task) only the names that the task says."""
    properties = schema.get("properties")
    for name, part in properties.items() if isinstance(properties, dict) else ():
        kind = part.get("type") if isinstance(part, dict) else None
        told = kind if isinstance(kind, str) else "any"
        is_sayable = _IDENTIFIER.fullmatch(name) is not None
        if task is not None:
            is_sayable = is_sayable and mentions(task, name.replace("_", " "))
        yield f"{name} ({told})" if is_sayable else f"one {told}"


def _step(node: Node, workflow: Workflow, task: str) -> str:
    called = str(node.tool) if node.tool else f"skill {node.skill.name}" if node.skill else "a function"
    constants = {
        place.argument: place.value
        for place in literal_places(workflow)
        if place.node == node.id
        and len(str(place.value)) <= _LONGEST_VALUE
        and (isinstance(place.value, bool) or mentions(task, place.value))
    }
    filled = [_filled(name, value, constants) for name, value in node.arguments.items()]
    each = ", once for each of a list" if node.for_each is not None else ""
    return f"{called}({', '.join(part for part in filled if part)}){each}"


def _filled(name: str, value: JsonValue, constants: Mapping[str, JsonValue]) -> str:
    if not _IDENTIFIER.fullmatch(name):
        return ""
    used = [found.reference for found in find_references(value)]
    inputs = sorted({r.name for r in used if r.root == "inputs" and _IDENTIFIER.fullmatch(r.name)})
    if inputs:
        return f"{name} from input {' and '.join(inputs)}"
    if used:
        return f"{name} from an earlier call"
    return f"{name} always {constants[name]!r}" if name in constants else f"{name} always the same"


def words_request(facts: Facts) -> Request:
    """Return what a model is asked."""
    return Request(
        messages=(Message("system", _SYSTEM), Message("user", facts.told())),
        schema=_SCHEMA,
        schema_name="words",
        max_output_tokens=_ANSWER_TOKENS,
        deadline_seconds=_DEADLINE_SECONDS,
    )


def read_words(answer: str, facts: Facts) -> Words:
    """Return the usable words of an answer: plain, in bounds, without a figure that was not shown.

    Raises:
        WordsRefused: none is usable.
    """
    try:
        said = read_json(answer)
    except NotJson as error:
        raise WordsRefused(f"no JSON object in the answer: {error}") from error
    if not isinstance(said, dict):
        raise WordsRefused("the answer is no JSON object")
    known = frozenset(_FIGURE.findall(facts.told()))
    words = Words(
        title=_line(said.get("title"), known, _LONGEST_TITLE),
        summary=_line(said.get("summary"), known, _LONGEST_SUMMARY),
        when_to_use=_line(said.get("when_to_use"), known, _LONGEST_LINE),
        when_not=_lines(said.get("when_not"), known),
        pitfalls=_lines(said.get("pitfalls"), known),
    )
    if words == Words():
        raise WordsRefused("nothing in the answer is plain text within its bounds")
    return words


def _line(said: JsonValue, known: frozenset[str], longest: int) -> str:
    if not isinstance(said, str):
        return ""
    line = " ".join(plain_text(said).split())
    is_usable = len(line) <= longest and not _MARKUP.search(line) and set(_FIGURE.findall(line)) <= known
    return line if is_usable and any(character.isalpha() for character in line) else ""


def _lines(said: JsonValue, known: frozenset[str]) -> tuple[str, ...]:
    lines = [_line(part, known, _LONGEST_LINE) for part in said] if isinstance(said, list) else []
    return tuple(dict.fromkeys(line for line in lines if line))[:_MOST_LINES]
