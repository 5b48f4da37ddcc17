"""Recovering data flow: a literal that an earlier output gave becomes a reference or a selector.

A literal that the task or an input says too has two readings: an input, which generalises, or a
link. `link_literals` returns one reading; which one holds is decided by runs on other inputs.

Paper: FlowEvo, AgentEvolver (compile; DESIGN §5.8).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pydantic import JsonValue

from server.compilation.derivation import Known, derivations
from server.compilation.places import Place, literal_places
from server.planning.literals import mentions
from skills_store.workflow.edits import EditParameter, EditRefused, apply_edit
from skills_store.workflow.graph import descendants
from skills_store.workflow.model import Workflow
from skills_store.workflow.references import escape_literal

__all__ = ["link_literals"]


def link_literals(
    workflow: Workflow,
    outputs: Mapping[str, JsonValue],
    task: str,
    inputs: Mapping[str, JsonValue],
    *,
    said_too: bool = False,
) -> Workflow:
    """Return the workflow with what earlier outputs gave replaced by how they gave it.

    Args:
        workflow: what ran.
        outputs: full node outputs of the run by id.
        task: the task in a person's words.
        inputs: values the run was given.
        said_too: whether also literals that the task or an input says are linked.
    """
    places = list(literal_places(workflow))
    said = [place for place in places if _is_said(place.value, task, inputs.values())]
    for place in places:
        if place in said and not said_too:
            continue
        earlier = _earlier(workflow, place, outputs)
        known = _known(workflow, place, said, inputs)
        for way in derivations(place.value, place.argument, earlier, known):
            edit = EditParameter(node=place.node, pointer=place.pointer, value=way.expression)
            try:
                workflow = apply_edit(workflow, edit)
            except EditRefused:
                continue
            break
    return workflow


def _is_said(value: JsonValue, task: str, given: Iterable[JsonValue]) -> bool:
    return mentions(task, value) or value in given


def _earlier(workflow: Workflow, place: Place, outputs: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return the outputs that may have been there when the place's node was called."""
    later = descendants(workflow, place.node) | {place.node}
    return {
        node.id: outputs[node.id] for node in workflow.nodes if node.id not in later and node.id in outputs
    }


def _known(
    workflow: Workflow, place: Place, said: Iterable[Place], inputs: Mapping[str, JsonValue]
) -> list[Known]:
    """Return what an item of a list may be found by: inputs, and other literals that somebody said."""
    declared = workflow.inputs.get("properties")
    names = declared if isinstance(declared, dict) else {}
    named = [Known(f"$inputs.{name}", value) for name, value in inputs.items() if name in names]
    return [
        *named,
        *(Known(escape_literal(other.value), other.value) for other in said if other.value != place.value),
    ]
