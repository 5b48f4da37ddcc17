"""Families of tasks for the compile benchmark: words, calls and three instances of each, as data.

A family writes its calls down once, each argument as a constant, as a value the task gives, or as
what is read from an earlier answer; making an instance's calls from that is `planned_call`. It is also
the ground truth, leaf by leaf: which are inputs and which are data flow.
Reading uses stock jmespath and `re`, nothing of the compiler that is measured.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Annotated, Any, Literal, cast

import jmespath
from pydantic import BaseModel, ConfigDict, Field, JsonValue, TypeAdapter, model_validator

from catalog.tools import ToolId
from server.provisioning.demo_files import FIXTURES
from server.provisioning.errors import TasksRejected

__all__ = [
    "Family",
    "Made",
    "PlannedStep",
    "Sourced",
    "compile_families",
    "planned_call",
    "planned_value",
    "step_items",
]

_SLOT = re.compile(r"(?<!\$)\{(\w+)\}")
_FORMS = ("given", "from", "join", "item", "all")


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class PlannedStep(_Model):
    """A call as the family plans it, or the same call for each item of a list.

    Args and `each` hold constants and these forms: `{"given": NAME}`; `{"from": STEP, "read":
    JMESPATH, "match": REGEX, "number": true}`; `{"all": STEP, "read": JMESPATH}`, one value per
    call of a repeated step; `{"item": JMESPATH}`; `{"join": [PART, ...]}`. `{NAME}` inside
    a `read` is a value the task gives.
    """

    tool: str = Field(pattern=r"^[\w-]+/[\w.-]+$")
    arguments: dict[str, JsonValue] = Field(default_factory=dict[str, JsonValue])
    each: dict[str, JsonValue] | None = None
    """What gives the list that the call is repeated over; None: one call."""

    @property
    def tool_id(self) -> ToolId:
        server, _, tool = self.tool.partition("/")
        return ToolId(server, tool)


class Family(_Model):
    """One family: a task in words with `{NAME}` for its values, its calls, and three instances."""

    id: str = Field(pattern=r"^[a-z0-9_]+$", max_length=40)
    task: str = Field(min_length=1)
    kinds: tuple[
        Literal["equal", "found_by_key", "captured", "template", "repeated", "said_too", "listed"], ...
    ] = ()
    """What makes it hard, for the table."""
    steps: tuple[PlannedStep, ...] = Field(min_length=2)
    instances: Annotated[tuple[dict[str, JsonValue], ...], Field(min_length=3, max_length=3)]
    volatile: tuple[str, ...] = ()
    """Keys of answers that differ from call to call; left out when outputs are compared."""

    @model_validator(mode="after")
    def _has_its_values(self) -> Family:
        names = set(_SLOT.findall(self.task))
        for number, instance in enumerate(self.instances, 1):
            if names != set(instance):
                odd = ", ".join(sorted(names ^ set(instance)))
                raise ValueError(f"instance {number} and the task differ in {odd}")
        return self

    @property
    def servers(self) -> tuple[str, ...]:
        """The servers its calls go to."""
        return tuple(dict.fromkeys(step.tool_id.server for step in self.steps))

    def said(self, instance: Mapping[str, JsonValue]) -> str:
        """Return the task of an instance in words."""
        return _SLOT.sub(lambda slot: _as_words(instance[slot[1]]), self.task)


@dataclass(frozen=True, slots=True)
class Sourced:
    """A value and where it is from: what the task gives by name, and calls by number from 0."""

    value: JsonValue
    given: frozenset[str] = frozenset()
    calls: frozenset[int] = frozenset()


_FAMILIES: TypeAdapter[list[Family]] = TypeAdapter(list[Family])


def compile_families(fixtures: str = FIXTURES) -> list[Family]:
    """Return the families that come with this package.

    Args:
        fixtures: folder of the files they read (`server.provisioning.demo_files`).

    Raises:
        TasksRejected: one says something impossible.
    """
    data = resources.files("server.bench").joinpath("data", "compile_families.json")
    try:
        families = _FAMILIES.validate_json(data.read_text(encoding="utf-8").replace(FIXTURES, fixtures))
    except ValueError as error:
        raise TasksRejected(f"compile families: {error}") from error
    ids = [family.id for family in families]
    if twice := sorted({one for one in ids if ids.count(one) > 1}):
        raise TasksRejected(f"compile families: ids are not unique: {', '.join(twice)}")
    return families


@dataclass(frozen=True, slots=True)
class Made:
    """What the calls of earlier steps gave: outputs by step, and their numbers in the session."""

    instance: Mapping[str, JsonValue]
    outputs: Sequence[Sequence[JsonValue]]
    numbers: Sequence[Sequence[int]]


def step_items(step: PlannedStep, made: Made) -> list[Sourced | None]:
    """Return the items a step is called for, each with its source; one None for a plain call.

    Raises:
        TasksRejected: what should be a list is none.
    """
    if step.each is None:
        return [None]
    whole = _sourced(step.each, made, None)
    if not isinstance(whole.value, list):
        raise TasksRejected(f"{step.tool}: {step.each} gives no list")
    return [Sourced(item, whole.given, whole.calls) for item in whole.value]


def planned_call(
    step: PlannedStep, made: Made, item: Sourced | None
) -> tuple[dict[str, JsonValue], dict[str, Sourced]]:
    """Return the literal arguments of one call, and its scalar arguments by pointer with their sources."""
    arguments = {name: _sent(value, made, item) for name, value in step.arguments.items()}
    leaves = {
        place: leaf
        for name, value in step.arguments.items()
        for place, leaf in _leaves_of(value, made, item, f"/{name}").items()
    }
    return arguments, leaves


def planned_value(value: JsonValue, made: Made) -> JsonValue:
    """Return what a value with forms stands for, once the calls before it were made.

    Raises:
        TasksRejected: a form reads what is not there.
    """
    return _sent(value, made, None)


def _leaves_of(value: JsonValue, made: Made, item: Sourced | None, pointer: str) -> dict[str, Sourced]:
    """Return by pointer every leaf of planned arguments, with its value and sources."""
    match value:
        case dict() if any(form in value for form in _FORMS):
            return _spread(_sourced(cast("dict[str, JsonValue]", value), made, item), pointer)
        case dict():
            parts = [(key, inner) for key, inner in value.items()]
        case list():
            parts = [(str(index), inner) for index, inner in enumerate(value)]
        case _:
            return {pointer: Sourced(value)}
    return {
        place: leaf
        for key, inner in parts
        for place, leaf in _leaves_of(inner, made, item, f"{pointer}/{key}").items()
    }


def _sent(value: JsonValue, made: Made, item: Sourced | None) -> JsonValue:
    """Return planned arguments, or a part of them, as the literals that a client sends."""
    match value:
        case dict() if any(form in value for form in _FORMS):
            return _sourced(cast("dict[str, JsonValue]", value), made, item).value
        case dict():
            return {key: _sent(inner, made, item) for key, inner in value.items()}
        case list():
            return [_sent(inner, made, item) for inner in value]
        case _:
            return value


def _spread(whole: Sourced, pointer: str) -> dict[str, Sourced]:
    """Return the leaves of a value that has one source; those of `all` have one call each."""
    if not isinstance(whole.value, list | dict) or not whole.value:
        return {pointer: whole}
    inner = whole.value
    parts = enumerate(inner) if isinstance(inner, list) else inner.items()
    numbers = sorted(whole.calls)
    own = isinstance(inner, list) and len(numbers) == len(inner) > 1
    found: dict[str, Sourced] = {}
    for at, (key, part) in enumerate(parts):
        calls = frozenset({numbers[at]}) if own else whole.calls
        found |= _spread(Sourced(part, whole.given, calls), f"{pointer}/{key}")
    return found


def _sourced(form: dict[str, JsonValue], made: Made, item: Sourced | None) -> Sourced:
    match form:
        case {"given": str(name)}:
            return Sourced(made.instance[name], frozenset({name}))
        case {"item": path} if item is not None:
            found = item.value if path is True else jmespath.search(str(path), item.value)
            return Sourced(_shaped(found, form), item.given, item.calls)
        case {"all": int(step), "read": str(path)}:
            values = [_read(path, output, made.instance)[0] for output in made.outputs[step - 1]]
            return Sourced(values, frozenset(), frozenset(made.numbers[step - 1]))
        case {"from": int(step), "read": str(path)}:
            output, number = made.outputs[step - 1][-1], made.numbers[step - 1][-1]
            found, named = _read(path, output, made.instance)
            return Sourced(_shaped(found, form), named, frozenset({number}))
        case {"join": list(parts)}:
            pieces = [
                _sourced(part, made, item) if isinstance(part, dict) else Sourced(part) for part in parts
            ]
            return Sourced(
                "".join(_as_words(piece.value) for piece in pieces),
                frozenset[str]().union(*(piece.given for piece in pieces)),
                frozenset[int]().union(*(piece.calls for piece in pieces)),
            )
        case _:
            raise TasksRejected(f"not a form of a value: {json.dumps(form)}")


def _read(path: str, output: JsonValue, given: Mapping[str, JsonValue]) -> tuple[JsonValue, frozenset[str]]:
    named = frozenset(_SLOT.findall(path)) & given.keys()
    for name in named:
        path = path.replace(f"{{{name}}}", _as_words(given[name]))
    found: Any = jmespath.search(path, output)
    return cast("JsonValue", found), frozenset(named)


def _shaped(found: JsonValue, form: Mapping[str, JsonValue]) -> JsonValue:
    """Return what was read after `match` and `number`.

    Raises:
        TasksRejected: nothing was read.
    """
    if isinstance(pattern := form.get("match"), str):
        captured = re.search(pattern, str(found))
        found = captured[1] if captured else None
    if found is None:
        raise TasksRejected(f"{json.dumps(dict(form))} reads nothing")
    if form.get("number"):
        number = float(str(found).replace(",", ""))
        return int(number) if number.is_integer() and "." not in str(found) else number
    return found


def _as_words(value: JsonValue) -> str:
    match value:
        case list():
            return ", ".join(_as_words(item) for item in value)
        case str():
            return value
        case _:
            return json.dumps(value)
