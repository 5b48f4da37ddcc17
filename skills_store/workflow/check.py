"""Static faults of a workflow against a snapshot of the tools: all of them, before anything runs.

What a value will be is left to the run; here only what is certain is a fault. Never raises.
"""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import JsonValue

from catalog.errors import SchemaRejected
from catalog.schema import check_schema, types
from catalog.tools import JsonSchema, Snapshot
from skills_store.skill import Signature
from skills_store.workflow.argument_check import Place, check_values
from skills_store.workflow.expression_check import Reader, check_assertions, check_expressions
from skills_store.workflow.faults import Cycle, Fault, Malformed, MissingOutput
from skills_store.workflow.graph import cycles
from skills_store.workflow.limits import Limits, check_limits
from skills_store.workflow.model import Workflow, json_pointer
from skills_store.workflow.node_check import NodeCheck, similar_tools
from skills_store.workflow.references import Found
from skills_store.workflow.scan import scan
from skills_store.workflow.sources import Sources

__all__ = ["Limits", "check_inputs", "check_workflow", "similar_tools"]


def check_workflow(
    workflow: Workflow,
    snapshot: Snapshot,
    *,
    skills: Mapping[str, Signature] | None = None,
    limits: Limits | None = None,
) -> list[Fault]:
    """Return every static fault, in the order of the document.

    Args:
        workflow: any workflow value.
        snapshot: the tools there are.
        skills: signatures of callable skills by `name@version`, or by name.
        limits: bounds; a document that passes a bound of size or depth is looked at no further.
    """
    faults = check_limits(workflow, limits or Limits())
    if faults:
        return faults
    sources = Sources(workflow, snapshot, skills or {})
    nodes = NodeCheck(workflow, snapshot, skills or {}, sources)
    faults += _check_inputs_schema(workflow.inputs)
    groups = {group[0]: group for group in cycles(workflow)}
    for index, node in enumerate(workflow.nodes):
        faults += nodes.faults(node, f"/nodes/{index}")
        if node.id in groups:
            faults.append(_cycle(groups[node.id], f"/nodes/{index}"))
    faults += _check_outputs(workflow, sources)
    faults += check_assertions(workflow.expect, "/expect", None, workflow)
    return faults


def check_inputs(workflow: Workflow, inputs: dict[str, JsonValue]) -> list[Fault]:
    """Return the faults of input values against the workflow's schema, with pointers under `/inputs`."""
    return check_values(inputs, {"type": "object", **workflow.inputs}, Place("/inputs"))


def _check_inputs_schema(schema: JsonSchema) -> list[Fault]:
    try:
        check_schema(schema)
        admitted = types(schema)
    except SchemaRejected as error:
        return [Malformed(message=str(error), pointer="/inputs")]
    if "object" in admitted:
        return []
    return [Malformed(message="the inputs are an object: 'type' must be 'object'", pointer="/inputs/type")]


def _cycle(nodes: tuple[str, ...], place: str) -> Fault:
    message = f"nodes wait for each other: {', '.join(nodes)}"
    return Cycle(message=message, node=nodes[0], pointer=place, nodes=nodes)


def _check_outputs(workflow: Workflow, sources: Sources) -> list[Fault]:
    if not workflow.outputs:
        message = "the workflow declares no outputs"
        return [MissingOutput(message=message, pointer="/outputs", output="")]
    faults: list[Fault] = []
    for name, value in workflow.outputs.items():
        place = f"/outputs{json_pointer(name)}"
        found = check_expressions(value, place, Reader(), sources)
        faults += found or _check_fed(name, value, place, workflow)
    return faults


def _check_fed(name: str, value: JsonValue, place: str, workflow: Workflow) -> list[Fault]:
    if any(isinstance(part, Found) and part.reference.root == "nodes" for part in scan(value)):
        return []
    available = tuple(f"$nodes.{node.id}.output" for node in workflow.nodes)
    message = f"output {name!r} is fed by no tool's output"
    return [MissingOutput(message=message, pointer=place, output=name, available=available)]
