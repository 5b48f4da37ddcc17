"""What a planner model is told, in an order that keeps what repeats in front.

Rules, worked example and catalog are the same from task to task and stand first, byte for byte, so
that prompt caches hit; the task stands last. The example's tools are not in any catalog: of an
example in the catalog's own tools the last step leaks into every plan. Secrets are taken out by
the caller's `redact`, and nothing here ever sees an assertion.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pydantic import JsonValue

from catalog.plain_text import plain_text
from catalog.tools import ToolId
from server.backends.backend import Message
from server.planning.catalog_view import CatalogView
from skills_store.experience.spans import ExperienceSpan
from skills_store.experience.unit import ExperienceUnit
from skills_store.workflow.faults import (
    DanglingReference,
    Fault,
    InvalidArgument,
    UnexpectedArgument,
    UnknownTool,
)

__all__ = [
    "Advice",
    "advice_text",
    "describe_faults",
    "lesson_spans",
    "plan_messages",
    "rules_message",
    "task_text",
]

_RULES = """\
You plan tool calls. Answer with one JSON object and nothing else:
{"nodes":[{"tool":"NAME","id":"n1","arguments":{...}}],"outputs":{"NAME":"$n1.field"}}
- Use only the tools listed, each with its own parameters; a parameter with ? may be left out.
- One node for each step that the request asks for, in order, and none that it does not ask for.
- To use what an earlier node answered, write "$n1.field" in quotes as the whole value; "$n1" is all of it.
- Take all other values from the request exactly as it says them; compute nothing yourself.
- "outputs" holds, for each output asked for, the reference to the node that answers it."""

_MAPPING = """
- To call a tool once for each item of a list, add "for_each":"$n1.items" to its node and use "$item"."""

_EXAMPLE = """\
An example, with tools that you do not have:
find_book(title: string) -> {isbn: string, pages: integer}
add_pages(one: integer, other: integer) -> {pages: integer}
reading_days(pages: integer, per_day: integer) -> {days: number}
Request: I want to read Dune and Emma. Find both books, add their pages, and tell me in how many days \
I can read them at 40 pages a day.
Outputs: days
{"nodes":[{"tool":"find_book","id":"n1","arguments":{"title":"Dune"}},\
{"tool":"find_book","id":"n2","arguments":{"title":"Emma"}},\
{"tool":"add_pages","id":"n3","arguments":{"one":"$n1.pages","other":"$n2.pages"}},\
{"tool":"reading_days","id":"n4","arguments":{"pages":"$n3.pages","per_day":40}}],\
"outputs":{"days":"$n4.days"}}"""

_LESSONS = "Lessons of earlier tasks:\n"
_LONGEST_VALUE = 160
_MOST_FAULTS = 6
_LONGEST_FAULT = 400
_LONGEST_ADVICE = 1_200
_LONGEST_SKILL = 2_400
"""A view of a skill comes within its own budget of tokens; a plan cut short teaches a wrong one."""


@dataclass(frozen=True, slots=True)
class Advice:
    """What is known besides the task: both may be empty."""

    experiences: Sequence[str] = ()
    """Each a rule of thumb, when to use it and what to do."""
    skills: Sequence[str] = ()
    """Each a compact view of a skill that is like the task."""
    tools: Sequence[ToolId] = ()
    """Tools that the skills call, which a model has to be shown."""
    lessons: Sequence[ExperienceUnit] = ()
    """What earlier runs taught; they stand first, and `lesson_spans` says where."""


def rules_message(view: CatalogView, *, can_map: bool = False) -> Message:
    """Return the part of the prompt that does not change with the task while the catalog is whole."""
    rules = _RULES + (_MAPPING if can_map else "")
    return Message("system", f"{rules}\n\n{_EXAMPLE}\n\nThe tools you have:\n{view.text}")


def plan_messages(
    view: CatalogView, asked: str, *, advice: Advice | None = None, can_map: bool = False
) -> tuple[Message, ...]:
    """Return the messages that ask for a plan.

    Args:
        view: the tools.
        asked: the task as `task_text` puts it.
        advice: what is known besides it.
        can_map: whether the model is told of mapped nodes, which small ones misuse.
    """
    known = advice_text(advice or Advice())
    return (rules_message(view, can_map=can_map), Message("user", known + asked))


def task_text(task: str, inputs: Mapping[str, JsonValue], wanted: Sequence[str]) -> str:
    """Return the request with its inputs and the outputs asked for, all of it redacted already."""
    lines = [f"Request: {plain_text(task)}"]
    if inputs:
        shown = ", ".join(f"$inputs.{name} = {_value(value)}" for name, value in inputs.items())
        lines.append(f"Inputs: {shown}")
    lines.append(f"Outputs: {', '.join(wanted or ('result',))}")
    return "\n".join(lines)


def describe_faults(faults: Sequence[Fault]) -> str:
    """Return faults as the next attempt reads them: what, where, what was given, what is expected.

    A code alone teaches a small model nothing; the exact message does.
    """
    lines = dict.fromkeys(_described(fault) for fault in faults)
    return "\n".join(f"- {line}" for line in list(lines)[:_MOST_FAULTS])


def _described(fault: Fault) -> str:
    places = [f"node {fault.node}"] if fault.node and fault.node not in fault.message else []
    more = ""
    match fault:
        case InvalidArgument():
            if fault.argument and fault.argument not in fault.message:
                places.append(f"argument {fault.argument!r}")
            if fault.expected and fault.found is not None:
                more = f" (given {_value(fault.found)}, expected {_value(fault.expected)})"
        case UnexpectedArgument():
            more = _unless_said(fault, "it takes", fault.allowed)
        case DanglingReference():
            more = _unless_said(fault, "there is", fault.available[:12])
        case UnknownTool():
            more = _unless_said(fault, "there is", tuple(similar.tool for similar in fault.similar))
        case _:
            pass
    where = "".join(f"{place}, " for place in places)[:-2]
    return plain_text(f"{where}{': ' if where else ''}{fault.message}{more}", _LONGEST_FAULT)


def _unless_said(fault: Fault, lead: str, names: Sequence[str]) -> str:
    """Return what there is instead, nothing where the message names it all already."""
    missing = [name for name in names if name not in fault.message]
    return f" ({lead} {', '.join(names)})" if missing else ""


def advice_text(advice: Advice) -> str:
    """Return what is known besides the task as it stands before it, empty when nothing is."""
    parts: list[str] = []
    if advice.lessons:
        parts.append(_LESSONS + _listed([unit.text for unit in advice.lessons], _LONGEST_ADVICE))
    if advice.experiences:
        parts.append("What was learned before:\n" + _listed(advice.experiences, _LONGEST_ADVICE))
    if advice.skills:
        parts.append("Plans that worked for like requests:\n" + _listed(advice.skills, _LONGEST_SKILL))
    return "".join(f"{part}\n\n" for part in parts)


def lesson_spans(advice: Advice, message: int) -> tuple[ExperienceSpan, ...]:
    """Return where the lessons stand in a message that begins with `advice_text`, their lead included."""
    if not advice.lessons:
        return ()
    spans = [ExperienceSpan(message, 0, len(_LESSONS), "")]
    for unit in advice.lessons:
        start = spans[-1].end
        spans.append(
            ExperienceSpan(message, start, start + len(_listed([unit.text], _LONGEST_ADVICE)) + 1, unit.id)
        )
    last = spans.pop()
    return (*spans, replace(last, end=last.end + 1))


def _listed(texts: Sequence[str], longest: int) -> str:
    return "\n".join(f"- {plain_text(text, longest)}" for text in texts)


def _value(value: JsonValue) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST_VALUE else text[: _LONGEST_VALUE - 1] + "…"
