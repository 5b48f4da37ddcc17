"""The named baseline of the compile benchmark: inference by exact equality alone.

A literal that an earlier answer holds as an equal value of its own is read from the latest such
place; one that the task says becomes an input; everything else stays. No selectors, captures,
templates, folding, or second runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pydantic import JsonValue

from server.bench.sessions import MadeCall, Session
from server.planning.literals import mentions
from skills_store.skill import RecordedCall
from skills_store.workflow.model import Node, Workflow, json_pointer
from skills_store.workflow.references import Reference, escape_literal

__all__ = ["compile_by_equality"]


def compile_by_equality(session: Session) -> tuple[Workflow, dict[str, JsonValue], list[RecordedCall]]:
    """Return the workflow, the inputs that reproduce the session, and its calls under its nodes."""
    inputs: dict[str, JsonValue] = {}
    nodes: list[Node] = []
    recorded: list[RecordedCall] = []
    for number, call in enumerate(session.calls):
        earlier = session.calls[:number]
        arguments = {
            key: _inferred(value, key, earlier, session.task, inputs) for key, value in call.arguments.items()
        }
        node = Node(
            id=f"call_{number}", tool=call.tool, arguments=arguments, after=(nodes[-1].id,) if nodes else ()
        )
        nodes.append(node)
        recorded.append(
            RecordedCall(node=node.id, tool=call.tool, arguments=call.arguments, output=call.output)
        )
    workflow = Workflow(
        name="by_equality",
        inputs={"type": "object", "properties": {name: {} for name in inputs}},
        nodes=tuple(nodes),
        outputs={"whole": f"$nodes.{nodes[-1].id}.output"},
    )
    return workflow, inputs, recorded


def _inferred(
    value: JsonValue, argument: str, earlier: Sequence[MadeCall], task: str, inputs: dict[str, JsonValue]
) -> JsonValue:
    match value:
        case dict():
            return {key: _inferred(item, key, earlier, task, inputs) for key, item in value.items()}
        case list():
            return [_inferred(item, argument, earlier, task, inputs) for item in value]
        case bool() | None:
            return value
        case _:
            pass
    for number in reversed(range(len(earlier))):
        for pointer, found in _scalars(earlier[number].output):
            if type(found) is type(value) and found == value:
                return str(Reference("nodes", f"call_{number}", pointer))
    if not mentions(task, value):
        return escape_literal(value)
    known = next((name for name, given in inputs.items() if given == value), None)
    name = known or f"{argument}_{len(inputs)}"
    inputs[name] = value
    return f"$inputs.{name}"


def _scalars(value: JsonValue, pointer: str = "") -> Iterator[tuple[str, JsonValue]]:
    match value:
        case dict():
            for key, item in value.items():
                yield from _scalars(item, pointer + json_pointer(key))
        case list():
            for index, item in enumerate(value):
                yield from _scalars(item, f"{pointer}/{index}")
        case _:
            yield pointer, value
