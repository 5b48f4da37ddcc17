"""Lifting: literals that a task and a run share become typed inputs, equal ones one input.

A list whose items the task says is one input; a value that stands inside a longer text becomes a
placeholder there. Values that a caller names are lifted under their names, said or not.

Paper: FlowEvo (democase_sql adapter; facts §3.8 step 2). Differs: where the workflow declares
inputs, those are the signature; what else the task says stays frozen, and is named as frozen.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue

from catalog.schema import json_type
from catalog.tools import JsonSchema, Snapshot
from catalog.vocabulary import STOP_WORDS
from server.compilation.choices import record_places
from server.compilation.places import Place, list_places, literal_places, with_argument
from server.planning.literals import TaskLiteral, TaskLiteralKind, mentions, task_literals
from server.planning.view import argument_schema
from skills_store.workflow.model import Workflow

__all__ = ["Lifted", "declared_inputs", "lift_literals"]

_VALUES: frozenset[TaskLiteralKind] = frozenset(
    {"quoted", "url", "email", "date", "time", "zone", "path", "number"}
)
"""Kinds of task literals that are values whatever the sentence is; a name or a word may be prose."""
_NAME_BEFORE = re.compile(r"([A-Za-z_]\w*)\W{0,6}$")


@dataclass(frozen=True, slots=True)
class Lifted:
    """A workflow whose shared literals are inputs now, and the values that reproduce the run."""

    workflow: Workflow
    inputs: dict[str, JsonValue]
    uncarried: tuple[str, ...] = ()
    """Values the task states that no input carries, as the task writes them."""


def declared_inputs(workflow: Workflow) -> tuple[str, ...]:
    """Return the names of the inputs a workflow declares."""
    properties = workflow.inputs.get("properties")
    return tuple(properties) if isinstance(properties, dict) else ()


def lift_literals(
    workflow: Workflow,
    task: str,
    inputs: Mapping[str, JsonValue],
    snapshot: Snapshot,
    taken: Mapping[str, JsonValue] | None = None,
    *,
    records: bool = False,
) -> Lifted:
    """Return the workflow with the task's literals as inputs, or as it is where it declares its own.

    Args:
        workflow: what ran.
        task: the task in a person's words, empty when there is none.
        inputs: values the run was given; where the workflow declares no inputs, values that the
            caller wants as inputs, by the names they shall have.
        snapshot: tools, for the schemas that inputs take over.
        taken: values of inputs that the workflow reads already without declaring them.
        records: whether identifiers that nothing explains become inputs too (`choices`).
    """
    if declared_inputs(workflow):
        return Lifted(workflow, dict(inputs))
    literals = task_literals(task)
    stated = [literal for literal in literals if literal.kind in _VALUES]
    lifting = _Lifting(workflow, snapshot, inputs, dict(taken or {}))
    lifting.properties |= {name: _typed(value) for name, value in lifting.values.items()}
    lifting.take_lists(task)
    lifting.take_scalars(task)
    if records:
        lifting.take_records()
    lifting.take_parts([*stated, *(literal for literal in literals if _is_code(literal))])
    uncarried = [literal.text for literal in stated if not lifting.carries(literal.value)]
    return Lifted(lifting.result(), lifting.values, tuple(dict.fromkeys(uncarried)))


@dataclass
class _Lifting:
    """A workflow whose literals become inputs, one after the other."""

    workflow: Workflow
    snapshot: Snapshot
    named: Mapping[str, JsonValue]
    values: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    properties: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])

    def take_lists(self, task: str) -> None:
        for place in list(list_places(self.workflow)):
            items = place.value if isinstance(place.value, list) else []
            if self._is_named(place.value) or all(_is_shared(item, task) for item in items):
                self._take(place)

    def take_scalars(self, task: str) -> None:
        for place in list(literal_places(self.workflow)):
            if self._is_named(place.value) or _is_shared(place.value, task):
                self._take(place)

    def take_records(self) -> None:
        for place in list(record_places(self.workflow)):
            self._take(place)

    def take_parts(self, stated: Sequence[TaskLiteral]) -> None:
        """Lift what the task states and what is named where it stands inside of longer texts."""
        said = [literal.value for literal in stated]
        wanted = [value for value in (*self.named.values(), *said) if not self.carries(value)]
        for place in list(literal_places(self.workflow)):
            text = place.value
            for value in wanted if isinstance(text, str) else ():
                text = self._with_placeholder(place, str(text), value)
            if text != place.value:
                self.workflow = with_argument(self.workflow, place, text)

    def carries(self, value: JsonValue) -> bool:
        """Return whether an input has a value, alone or as an item of its list."""
        given: list[JsonValue] = []
        for one in self.values.values():
            given += one if isinstance(one, list) else [one]
        return any(_key(value) == _key(one) for one in (*given, *self.values.values()))

    def result(self) -> Workflow:
        if not self.values:
            return self.workflow
        schema: JsonSchema = {
            "type": "object",
            "properties": self.properties,
            "required": list(self.values),
            "additionalProperties": False,
        }
        return self.workflow.model_copy(update={"inputs": schema})

    def _take(self, place: Place) -> None:
        name = self._input(place.value)
        if name is None:
            name = self._name_of(place.value) or _free_name(place, self.values)
            self.values[name] = place.value
            self.properties[name] = self._schema_of(place)
        self.workflow = with_argument(self.workflow, place, f"$inputs.{name}")

    def _with_placeholder(self, place: Place, text: str, value: JsonValue) -> str:
        shown = _shown(value)
        found = re.search(_alone(shown), text) if shown else None
        if found is None or "{" in shown:
            return text
        name = self._input(value)
        if name is None:
            before = _NAME_BEFORE.search(text[: found.start()])
            stem = before[1] if before is not None and before[1].lower() not in STOP_WORDS else place.argument
            named = Place(place.node, stem, "", value)
            name = self._name_of(value) or _free_name(named, self.values)
            self.values[name] = value
            # Inside of a text any number is as good as a whole one.
            self.properties[name] = {"type": "number" if json_type(value) == "integer" else json_type(value)}
        return re.sub(_alone(shown), lambda _: f"{{$inputs.{name}}}", text)

    def _input(self, value: JsonValue) -> str | None:
        return next((name for name, given in self.values.items() if _key(given) == _key(value)), None)

    def _name_of(self, value: JsonValue) -> str | None:
        return next((name for name, given in self.named.items() if _key(given) == _key(value)), None)

    def _is_named(self, value: JsonValue) -> bool:
        return self._name_of(value) is not None

    def _schema_of(self, place: Place) -> JsonSchema:
        node = self.workflow.node(place.node)
        tool = self.snapshot.get(node.tool) if node and node.tool else None
        is_whole = place.pointer.count("/") == 1
        schema = argument_schema(tool, place.argument) if is_whole else {}
        kept = {key: value for key, value in schema.items() if key not in ("default", "title", "examples")}
        return kept or _typed(place.value)


def _is_code(literal: TaskLiteral) -> bool:
    """Return whether a literal is a code with a digit, as `B3` or `v1_2`: no word of a sentence."""
    return literal.kind == "symbol" and any(sign.isdecimal() for sign in literal.text)


def _is_shared(value: JsonValue, task: str) -> bool:
    """Return whether a task states a value; a word that every sentence has says nothing."""
    return mentions(task, value) and str(value).strip().lower() not in STOP_WORDS


def _key(value: JsonValue) -> tuple[str, JsonValue]:
    """Return what makes two literals one: type and value, text whatever its case."""
    match value:
        case bool():
            return "boolean", value
        case int() | float():
            return "number", float(value)
        case str():
            return "string", value.strip().lower()
        case _:
            return json_type(value), str(value)


def _shown(value: JsonValue) -> str:
    """Return how a value would stand inside a text; empty for what stands nowhere."""
    match value:
        case bool() | None:
            return ""
        case int() | str():
            return str(value)
        case float():
            return f"{value:g}"
        case _:
            return ""


def _alone(shown: str) -> str:
    """Return a pattern for a value that stands by itself inside a text."""
    return rf"(?<![\w.]){re.escape(shown)}(?![\w]|\.\d)"


def _typed(value: JsonValue) -> JsonSchema:
    if not isinstance(value, list):
        return {"type": json_type(value)}
    kinds = {json_type(item) for item in value}
    if len(kinds) == 1:
        return {"type": "array", "items": {"type": kinds.pop()}}
    return {"type": "array", "items": {"type": "number"} if kinds == {"integer", "number"} else {}}


def _free_name(place: Place, taken: Iterable[str]) -> str:
    stem = re.sub(r"\W+", "_", place.argument, flags=re.ASCII).strip("_").lower() or "value"
    stem = stem if re.match(r"[a-z_]", stem) else f"in_{stem}"
    options = [stem, f"{place.node}_{stem}", *(f"{stem}_{i}" for i in range(2, 100))]
    return next(name for name in options if name not in taken)
