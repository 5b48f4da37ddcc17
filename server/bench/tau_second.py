"""A skill of one reference run on another task of the same calls: its inputs, what differs.

Pure: values of the second reference run are put at the inputs' places, and sent calls are compared.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal

from pydantic import JsonValue

from catalog.tools import ToolId
from skills_store.skill import Skill
from skills_store.trace import Step
from skills_store.workflow.bounds import json_equal
from skills_store.workflow.model import Node

__all__ = ["MadeCalls", "TauCause", "base_of", "cause_of", "inputs_of"]

_PLACEHOLDER = re.compile(r"\{\$([^{}]*)\}")
MadeCalls = Sequence[tuple[str, dict[str, JsonValue]]]
"""Names of tools and what they were given, in order."""

TauCause = Literal[
    "an input has two values there",
    "an input has no place",
    "an answer gives another record",
    "a constant differs",
    "the calls are the same",
    "it cannot be run",
]
"""Why a skill does otherwise on a second task."""


def base_of(skill: Skill, runs: Sequence[MadeCalls]) -> int:
    """Return the number of the run that a skill's first test is of; another save may have made it."""
    shared = [sum(number is not None for _, number, _ in _placed(skill, run)) for run in runs]
    return shared.index(max(shared))


def inputs_of(
    skill: Skill, one: MadeCalls, other: MadeCalls
) -> tuple[dict[str, JsonValue] | None, TauCause | None]:
    """Return the values that another run of the same calls has at the inputs' places, or why it has none.

    Args:
        skill: made of the first run.
        one: calls of the first run.
        other: calls of the other, as many and of the same tools.
    """
    placed = [*_placed(skill, one)]
    if other is one and all(number is not None for _, number, _ in placed):
        return dict(skill.tests[0].inputs), None
    taken: dict[str, list[JsonValue]] = {}
    for node, number, _ in placed:
        if node is None or number is None:
            continue
        sent = other[number][1]
        for argument, value in node.arguments.items():
            if argument in sent:
                _take(value, sent[argument], taken)
            if value == "$item" and isinstance(node.for_each, str) and node.for_each.startswith("$inputs."):
                taken.setdefault(node.for_each.removeprefix("$inputs."), []).append(sent.get(argument))
    inputs: dict[str, JsonValue] = {}
    for name, sample in skill.tests[0].inputs.items():
        values = taken.get(name)
        if not values:
            return None, "an input has no place"
        if isinstance(sample, list) and not isinstance(values[0], list):
            inputs[name] = list(values)
        elif any(not json_equal(value, values[0]) for value in values):
            return None, "an input has two values there"
        else:
            inputs[name] = values[0]
    return inputs, None


def cause_of(skill: Skill, one: MadeCalls, other: MadeCalls, steps: Sequence[Step]) -> TauCause:
    """Return why a skill that was run on another task's inputs did otherwise than its reference run.

    Args:
        skill: made of the first run.
        one: calls of the first run.
        other: calls of the other.
        steps: what the skill did.
    """
    sent = {(step.node, step.item): step.arguments for step in steps}
    for node, number, item in _placed(skill, one):
        if node is None or number is None or (given := sent.get((node.id, item))) is None:
            continue
        for argument, value in node.arguments.items():
            if not json_equal(given.get(argument), other[number][1].get(argument)):
                is_flow = "$nodes." in str(value) or "$item" in str(value)
                return "an answer gives another record" if is_flow else "a constant differs"
    return "the calls are the same"


def _placed(skill: Skill, run: MadeCalls) -> Iterator[tuple[Node | None, int | None, int | None]]:
    """Yield for each call of a skill's first test its node, its number in a run, and its item."""
    matched: set[int] = set()
    for call in skill.tests[0].recorded if skill.tests else ():
        number = next(
            (
                at
                for at, (tool, arguments) in enumerate(run)
                if at not in matched
                and call.tool == ToolId(call.tool.server, tool)
                and arguments == call.arguments
            ),
            None,
        )
        matched |= set() if number is None else {number}
        yield skill.workflow.node(call.node), number, call.item


def _said_in(template: str, text: str) -> Iterator[tuple[str, str]]:
    """Yield the inputs of a template with the part of a text each stands for; none where it does not fit."""
    parts = _PLACEHOLDER.split(template)
    pattern = "".join(re.escape(part) if at % 2 == 0 else "(.+?)" for at, part in enumerate(parts))
    found = re.fullmatch(pattern, text, re.DOTALL)
    for reference, said in zip(parts[1::2], found.groups() if found else (), strict=False):
        if reference.startswith("inputs."):
            yield reference.removeprefix("inputs."), said


def _take(planned: JsonValue, literal: JsonValue, taken: dict[str, list[JsonValue]]) -> None:
    """Note what another run has where a workflow reads an input."""
    match planned, literal:
        case str(), _ if planned.startswith("$inputs."):
            taken.setdefault(planned.removeprefix("$inputs."), []).append(literal)
        case str(), str() if "{$inputs." in planned:
            for name, said in _said_in(planned, literal):
                taken.setdefault(name, []).append(said)
        case list(), list() if len(planned) == len(literal):
            for one, other in zip(planned, literal, strict=True):
                _take(one, other, taken)
        case dict(), dict():
            for key, inner in planned.items():
                _take(inner, literal.get(key), taken)
        case _:
            return
