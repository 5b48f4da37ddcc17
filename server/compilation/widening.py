"""Widening: a kept skill and another run of the same calls become one skill with more inputs.

Both are taken back to the literal calls they were made of; where these differ and the skill has a
constant, it gets an input. What the skill had as an input already takes the other run's value.

Paper: FlowEvo (compile; DESIGN §5.8). Differs: two traces are enough, and where they cannot be
made one without a guess, they stay two skills.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

from pydantic import JsonValue

from catalog.schema import json_type
from catalog.tools import JsonSchema, Snapshot
from server.compilation.errors import NotCompilable
from server.compilation.generalising import FOR_EACH, Difference, Ran, generalise, is_flow
from server.planning.view import argument_schema
from skills_store.skill import RecordedCall, ReplayTest, Skill
from skills_store.workflow.bounds import json_equal
from skills_store.workflow.edits.places import has_place, read_place, set_place
from skills_store.workflow.model import Node, Workflow, json_pointer
from skills_store.workflow.references import (
    Reference,
    Scope,
    escape_literal,
    is_selector,
    parse_reference,
    pointer_parts,
    resolve,
)

__all__ = ["Widened", "as_second_run", "instantiated", "widen"]

_PLACEHOLDER = re.compile(r"\{\$inputs\.([A-Za-z_]\w*)\}")


@dataclass(frozen=True, slots=True)
class Widened:
    """The wider workflow, and the inputs under which it is each of the two runs."""

    workflow: Workflow
    one: dict[str, JsonValue]
    two: dict[str, JsonValue]
    added: tuple[str, ...]
    """Inputs that the skill did not have; empty where the other run is one of the skill's own."""
    second: ReplayTest
    """The other run as a test of the wider workflow."""


def widen(known: Skill, other: Skill, snapshot: Snapshot, *, optional: bool) -> Widened:
    """Return the workflow that both a kept skill and another candidate are instances of.

    Args:
        known: the kept skill.
        other: the candidate of another run.
        snapshot: tools, for the schemas that new inputs take over.
        optional: whether a new input defaults to the constant that the skill had.

    Raises:
        NotCompilable: they are not of one shape, or one test of each is not there.
    """
    if not known.tests or not other.tests:
        raise NotCompilable("a skill without a recorded run cannot be compared with another")
    first, second = known.tests[0], other.tests[0]
    one = Ran(instantiated(known.workflow, first.inputs), _outputs_of(first, known.workflow))
    two = Ran(instantiated(other.workflow, second.inputs), _outputs_of(second, other.workflow))
    general = generalise(one, two)
    widening = _Widening(_with_flow(known.workflow, general.workflow), snapshot, dict(first.inputs))
    for difference in general.differences:
        widening.take(difference)
    workflow = widening.result(optional=optional)
    inputs_two = {**widening.one, **widening.two}
    ids = {theirs.id: mine.id for mine, theirs in zip(known.workflow, other.workflow, strict=True)}
    _check_instance(workflow, inputs_two, two.workflow, ids)
    return Widened(
        workflow, widening.one, inputs_two, tuple(widening.added), as_second_run(second, inputs_two, ids)
    )


def instantiated(workflow: Workflow, inputs: Mapping[str, JsonValue]) -> Workflow:
    """Return the workflow with the values of its inputs in their places."""
    nodes = tuple(
        node.model_copy(
            update={
                "arguments": {key: _filled(value, inputs) for key, value in node.arguments.items()},
                "for_each": _filled(node.for_each, inputs),
            }
        )
        for node in workflow.nodes
    )
    return workflow.model_copy(update={"nodes": nodes})


def _filled(value: JsonValue, inputs: Mapping[str, JsonValue]) -> JsonValue:
    match value:
        case str() if value.startswith("$inputs."):
            reference = parse_reference(value)
            return escape_literal(resolve(value, Scope(inputs=inputs))) if reference.name in inputs else value
        case str() if _PLACEHOLDER.search(value):
            return _PLACEHOLDER.sub(
                lambda m: m[0] if m[1] not in inputs else str(resolve(m[0], Scope(inputs=inputs))), value
            )
        case dict() if set(value) == {"$literal"}:
            return value
        case dict():
            return {key: _filled(item, inputs) for key, item in value.items()}
        case list():
            return [_filled(item, inputs) for item in value]
        case _:
            return value


def _outputs_of(test: ReplayTest, workflow: Workflow) -> dict[str, JsonValue]:
    mapped = {node.id for node in workflow.nodes if node.for_each is not None}
    outputs: dict[str, JsonValue] = {}
    for call in sorted(test.recorded, key=lambda call: call.item or 0):
        if call.node in mapped:
            items = outputs.setdefault(call.node, [])
            outputs[call.node] = [*(items if isinstance(items, list) else []), call.output]
        else:
            outputs[call.node] = call.output
    return outputs


def _with_flow(known: Workflow, general: Workflow) -> Workflow:
    """Return the skill's workflow with the data flow that only the other run showed."""
    nodes: list[Node] = []
    for mine, found in zip(known.nodes, general.nodes, strict=True):
        arguments = {key: _merged(value, found.arguments[key]) for key, value in mine.arguments.items()}
        nodes.append(mine.model_copy(update={"arguments": arguments}))
    return known.model_copy(update={"nodes": tuple(nodes)})


def _merged(mine: JsonValue, found: JsonValue) -> JsonValue:
    """Return what a skill has with data flow where it has a literal, or data flow that holds once only."""
    if is_flow(found):
        is_lifted = isinstance(mine, str) and ("$inputs." in mine or "$item" in mine)
        return mine if is_lifted or _same_selector(mine, found) else found
    match mine, found:
        case dict(), dict() if mine.keys() == found.keys() and not is_selector(mine):
            return {key: _merged(value, found[key]) for key, value in mine.items()}
        case list(), list() if len(mine) == len(found):
            return [_merged(one, other) for one, other in zip(mine, found, strict=True)]
        case _:
            return mine


def _same_selector(mine: JsonValue, found: JsonValue) -> bool:
    if not (isinstance(mine, dict) and isinstance(found, dict) and is_selector(mine)):
        return False
    return mine["selector"] == found.get("selector")


@dataclass
class _Widening:
    """A workflow that gets inputs where two runs differ."""

    workflow: Workflow
    snapshot: Snapshot
    one: dict[str, JsonValue]
    two: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    added: dict[str, JsonSchema] = field(default_factory=dict[str, JsonSchema])

    def take(self, difference: Difference) -> None:
        """Let an input carry what differs.

        Raises:
            NotCompilable: an input would need two values at once.
        """
        node = self.workflow.node(difference.node)
        if node is not None and (part := _part_of_input(node, difference)) is not None:
            self._bind_part(*part, difference.two)
            return
        place = _place(node, difference) if node else None
        match place:
            case str() if (reference := _input(place)) is not None:
                self._bind(reference.name, difference.two)
            case _ if difference.explained:
                return
            case str() if _PLACEHOLDER.search(place):
                for name, text in _within(place, difference.two).items():
                    self._bind(name, _like(text, self.one[name]))
            case _:
                self._add(difference)

    def result(self, *, optional: bool) -> Workflow:
        if not self.added:
            return self.workflow
        declared = self.workflow.inputs
        properties, required = declared.get("properties"), declared.get("required")
        new: dict[str, JsonValue] = {
            name: {**schema, "default": self.one[name]} if optional else {**schema}
            for name, schema in self.added.items()
        }
        schema: JsonSchema = {
            **declared,
            "type": "object",
            "properties": {**(properties if isinstance(properties, dict) else {}), **new},
            "required": [*(required if isinstance(required, list) else []), *([] if optional else new)],
            "additionalProperties": False,
        }
        return self.workflow.model_copy(update={"inputs": schema})

    def _bind(self, name: str, value: JsonValue) -> None:
        if name in self.two and not json_equal(self.two[name], value):
            raise NotCompilable(f"the input {name} would have two values in the other run")
        self.two[name] = value

    def _bind_part(self, name: str, pointer: str, value: JsonValue) -> None:
        """Let an input that is a whole record have another value in one place of it."""
        before = read_place(self.one[name], pointer)
        held = self.two.get(name, self.one[name])
        now = read_place(held, pointer)
        if not json_equal(now, before) and not json_equal(now, value):
            raise NotCompilable(f"the input {name} would have two values in the other run")
        self.two[name] = set_place({"value": held}, f"/value{pointer}", value)["value"]

    def _add(self, difference: Difference) -> None:
        same = (n for n in self.added if json_equal(self.one[n], difference.one))
        name = next((n for n in same if json_equal(self.two[n], difference.two)), None)
        node = self.workflow.node(difference.node)
        if node is None:
            raise KeyError(difference.node)
        if name is None:
            name = _free_name(difference, self.one)
            self.one[name], self.two[name] = difference.one, difference.two
            self.added[name] = self._schema_of(node, difference)
        reference = f"$inputs.{name}"
        if difference.pointer == FOR_EACH:
            changed = node.model_copy(update={"for_each": reference})
        else:
            arguments = set_place(node.arguments, difference.pointer, reference)
            changed = node.model_copy(update={"arguments": arguments})
        self.workflow = self.workflow.replacing(changed)

    def _schema_of(self, node: Node, difference: Difference) -> JsonSchema:
        tool = self.snapshot.get(node.tool) if node.tool else None
        schema = argument_schema(tool, difference.argument) if difference.pointer.count("/") == 1 else {}
        kept = {key: value for key, value in schema.items() if key not in ("default", "title", "examples")}
        kinds = {json_type(difference.one), json_type(difference.two)}
        return kept or {"type": kinds.pop() if len(kinds) == 1 else "number"}


def _place(node: Node, difference: Difference) -> JsonValue:
    """Return what the skill has where two runs differ.

    Raises:
        NotCompilable: it has nothing there.
    """
    if difference.pointer == FOR_EACH:
        return node.for_each
    if not has_place(node.arguments, difference.pointer):
        raise NotCompilable(f"{node.id}: nothing of the skill stands where the other run differs")
    return read_place(node.arguments, difference.pointer)


def _part_of_input(node: Node, difference: Difference) -> tuple[str, str] | None:
    """Return the input that carries what differs as a part of its value, and where in it."""
    if difference.pointer == FOR_EACH:
        return None
    parts, value = pointer_parts(difference.pointer), cast("JsonValue", node.arguments)
    for at in range(len(parts)):
        if isinstance(value, str):
            reference = _input(value)
            return None if reference is None else (reference.name, json_pointer(*parts[at:]))
        if not has_place(value, json_pointer(parts[at])):
            return None
        value = read_place(value, json_pointer(parts[at]))
    return None


def _input(place: str) -> Reference | None:
    if not place.startswith("$inputs."):
        return None
    reference = parse_reference(place)
    return reference if not reference.pointer else None


def _within(template: str, text: JsonValue) -> dict[str, str]:
    """Return the texts that the placeholders of a template have in another text.

    Raises:
        NotCompilable: the text is not made by the template.
    """
    pattern, known = "", set[str]()
    for at, part in enumerate(_PLACEHOLDER.split(template)):
        if at % 2 == 0:
            pattern += re.escape(part)
        else:
            pattern += f"(?P={part})" if part in known else f"(?P<{part}>.+?)"
            known.add(part)
    made = re.fullmatch(pattern, text, re.DOTALL) if isinstance(text, str) else None
    if made is None:
        raise NotCompilable(f"{text!r:.80} is not made like {template!r:.80}")
    return made.groupdict()


def _like(text: str, sample: JsonValue) -> JsonValue:
    """Return a text of a placeholder as a value of the kind that another run had there.

    Raises:
        NotCompilable: it cannot be one.
    """
    if isinstance(sample, str):
        return text
    try:
        return int(text) if re.fullmatch(r"-?\d+", text) else float(text)
    except ValueError:
        raise NotCompilable(f"{text!r:.40} is no number, as {sample!r} was") from None


def _free_name(difference: Difference, taken: Mapping[str, JsonValue]) -> str:
    stem = re.sub(r"\W+", "_", difference.argument, flags=re.ASCII).strip("_").lower() or "value"
    stem = stem if re.match(r"[a-z_]", stem) else f"in_{stem}"
    options = [stem, f"{difference.node}_{stem}", *(f"{stem}_{i}" for i in range(2, 100))]
    return next(name for name in options if name not in taken)


def _check_instance(
    workflow: Workflow, inputs: Mapping[str, JsonValue], ran: Workflow, ids: Mapping[str, str]
) -> None:
    """Check that the wider workflow makes, on the other run's inputs, the calls of that run.

    Raises:
        NotCompilable: it does not, in the literals at least.
    """
    made = instantiated(workflow, inputs)
    for mine, theirs in zip(made.nodes, ran.nodes, strict=True):
        for key, value in mine.arguments.items():
            if not (is_flow(value) or is_selector(value) or _holds_flow(value)) and not json_equal(
                value, theirs.arguments[key]
            ):
                raise NotCompilable(f"{key} of {mine.id} would not be what it was in run {ids[theirs.id]}")


def _holds_flow(value: JsonValue) -> bool:
    match value:
        case dict():
            return is_selector(value) or any(_holds_flow(item) for item in value.values())
        case list():
            return any(_holds_flow(item) for item in value)
        case _:
            return is_flow(value)


def as_second_run(test: ReplayTest, inputs: dict[str, JsonValue], ids: Mapping[str, str]) -> ReplayTest:
    """Return the run of another candidate as a held-out test of a skill.

    Args:
        test: of the other candidate.
        inputs: of the skill, under which it makes that run.
        ids: of the skill's nodes, by those of the other candidate.
    """
    recorded = tuple(_renamed(call, ids) for call in test.recorded)
    return ReplayTest(
        name="second_run",
        inputs=inputs,
        outputs=test.outputs,
        volatile=test.volatile,
        recorded=recorded,
        kind="held_out",
    )


def _renamed(call: RecordedCall, ids: Mapping[str, str]) -> RecordedCall:
    return call.model_copy(update={"node": ids.get(call.node, call.node)})
