"""Recovering data flow: a literal equal to an earlier output becomes a reference to it.

Paper: FlowEvo, AgentEvolver (compile; DESIGN §5.8). A literal that the task or an input says too
stays what it is: both readings explain it, and an input generalises.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pydantic import JsonValue

from server.compilation.lifting import Place, literal_places
from server.planning.leaves import leaves_of_value
from server.planning.literals import mentions
from skills_store.workflow.edits import EditParameter, EditRefused, apply_edit
from skills_store.workflow.graph import descendants
from skills_store.workflow.model import Workflow
from skills_store.workflow.references import Reference

__all__ = ["link_literals"]

_TELLING_LENGTH = 4


def link_literals(
    workflow: Workflow, outputs: Mapping[str, JsonValue], task: str, inputs: Mapping[str, JsonValue]
) -> Workflow:
    """Return the workflow with copied outputs replaced by references to where they came from.

    Args:
        workflow: what ran.
        outputs: full node outputs of the run by id.
        task: the task in a person's words.
        inputs: values the run was given.
    """
    for place in list(literal_places(workflow)):
        is_said = mentions(task, place.value) or place.value in inputs.values()
        if is_said or not _is_telling(place.value):
            continue
        source = next(_sources(workflow, place, outputs), None)
        if source is None:
            continue
        edit = EditParameter(node=place.node, pointer=place.pointer, value=str(source))
        try:
            workflow = apply_edit(workflow, edit)
        except EditRefused:
            continue
    return workflow


def _is_telling(value: JsonValue) -> bool:
    """Return whether equality with an output is hardly chance: long text, or a number with digits."""
    match value:
        case bool() | None:
            return False
        case str():
            return len(value) >= _TELLING_LENGTH
        case int():
            return abs(value) >= 1000
        case float():
            return len(repr(value)) > _TELLING_LENGTH
        case _:
            return False


def _sources(workflow: Workflow, place: Place, outputs: Mapping[str, JsonValue]) -> Iterator[Reference]:
    later = descendants(workflow, place.node) | {place.node}
    earlier: Sequence[str] = [node.id for node in workflow.nodes if node.id not in later]
    for node_id in earlier:
        for leaf in leaves_of_value(outputs[node_id]) if node_id in outputs else ():
            if leaf.value == place.value and isinstance(leaf.value, type(place.value)):
                yield Reference("nodes", node_id, leaf.pointer)
