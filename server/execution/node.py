"""Runs one node: whether, over what, and what came of all its calls.

All items are resolved, coerced and validated before any of them is called, so that a fault that
can be seen from here never leaves a mapped node half done. When a node's turn comes is
`server.execution.run`.
"""

from __future__ import annotations

from dataclasses import replace

import anyio

from catalog.canonical import JsonValue
from server.execution.attempt import Attempt, call_code, call_skill, call_tool
from server.execution.environment import Environment, NodeRun
from server.execution.expectations import Reached, check_expectations
from server.execution.failures import Place
from server.execution.preparation import Prepared, Target, find_target, prepare
from server.execution.reading import Reader
from skills_store.trace import Outcome, Step
from skills_store.workflow.faults import Fault, FaultBase
from skills_store.workflow.graph import ancestors
from skills_store.workflow.model import Node
from skills_store.workflow.references import Scope

__all__ = ["run_node", "unrun"]


def unrun(node: Node, outcome: Outcome) -> NodeRun:
    """Return the record of a node that did not run: skipped, or not reached."""
    return NodeRun(outcome, steps=(_step(node, outcome),))


async def run_node(environment: Environment, node: Node, outputs: dict[str, JsonValue]) -> NodeRun:
    """Run a node whose dependencies have finished.

    Args:
        environment: the run.
        node: as planned.
        outputs: of the finished nodes, by id.
    """
    place = Place(node.id, environment.workflow.index(node.id))
    scope = Scope(environment.inputs, outputs)
    reader = Reader(environment.workflow, scope, place)
    wanted = reader.condition(node, place)
    if isinstance(wanted, FaultBase):
        return _failed(environment, node, wanted)
    if not wanted:
        return unrun(node, "skipped")
    items = reader.items(node, place)
    if isinstance(items, FaultBase):
        return _failed(environment, node, items)
    target = find_target(environment, node, place)
    if isinstance(target, FaultBase):
        return _failed(environment, node, target)
    calls = [prepare(target, node, each, each_place) for each, each_place in _readers(reader, place, items)]
    ready = [call for call in calls if isinstance(call, Prepared)]
    if len(ready) < len(calls):
        return _unready(environment, node, calls)
    attempts = await _attempt_all(environment, node, target, ready)
    return _finished(environment, node, attempts, scope, is_mapped=items is not None)


def _readers(reader: Reader, place: Place, items: list[JsonValue] | None) -> list[tuple[Reader, Place]]:
    if items is None:
        return [(reader, place)]
    found: list[tuple[Reader, Place]] = []
    for index, item in enumerate(items):
        at_item = replace(place, item=index)
        scope = replace(reader.scope, item=item, has_item=True)
        found.append((replace(reader, scope=scope, place=at_item), at_item))
    return found


async def _attempt_all(
    environment: Environment, node: Node, target: Target, ready: list[Prepared]
) -> list[Attempt]:
    """Return what came of each call, in order; one that fails does not stop the others."""
    attempts: dict[int, Attempt] = {}

    async def attempt(index: int, prepared: Prepared) -> None:
        if target.code is not None:
            attempts[index] = await call_code(environment, node, prepared, target.code)
        elif target.skill is None:
            attempts[index] = await call_tool(environment, node, prepared)
        else:
            attempts[index] = await call_skill(environment, node, prepared, target.skill)

    async with anyio.create_task_group() as tasks:
        for index, prepared in enumerate(ready):
            tasks.start_soon(attempt, index, prepared)
    return [attempts[index] for index in range(len(ready))]


def _finished(
    environment: Environment, node: Node, attempts: list[Attempt], scope: Scope, *, is_mapped: bool
) -> NodeRun:
    steps = tuple(step for attempt in attempts for step in attempt.steps)
    if faults := tuple(fault for attempt in attempts for fault in attempt.faults):
        return NodeRun("failed", steps=steps, faults=faults)
    output: JsonValue = [attempt.output for attempt in attempts] if is_mapped else attempts[0].output
    broken = _broken_promises(environment, node, output, scope)
    if not broken:
        return NodeRun("succeeded", output, steps or (_empty(environment, node),))
    told = {"outcome": "failed", "fault": environment.recorder.fault(broken[0])}
    if is_mapped:
        return NodeRun("failed", output, (*steps, _step(node, "failed").model_copy(update=told)), broken)
    own = steps[-1].model_copy(update={**told, "output": None, "output_digest": None})
    return NodeRun("failed", output, (*steps[:-1], own), broken)


def _broken_promises(
    environment: Environment, node: Node, output: JsonValue, scope: Scope
) -> tuple[Fault, ...]:
    if not node.expect:
        return ()
    place = Place(node.id, environment.workflow.index(node.id))
    before = ancestors(environment.workflow, node.id)
    nodes = {name: value for name, value in scope.outputs.items() if name in before}
    reached = Reached(output, environment.inputs, {**nodes, node.id: output})
    return tuple(check_expectations(node.expect, reached, place.at("expect"), node.id))


def _failed(environment: Environment, node: Node, fault: Fault) -> NodeRun:
    step = _step(node, "failed").model_copy(update={"fault": environment.recorder.fault(fault)})
    return NodeRun("failed", steps=(step,), faults=(fault,))


def _unready(environment: Environment, node: Node, calls: list[Prepared | list[Fault]]) -> NodeRun:
    """Return the record of a node some of whose calls cannot be made, so that none was."""
    steps: list[Step] = []
    faults: list[Fault] = []
    for index, call in enumerate(calls):
        item = index if node.for_each is not None else None
        if isinstance(call, Prepared):
            steps.append(_step(node, "not_reached").model_copy(update={"item": item}))
            continue
        faults += call
        told = {"item": item, "fault": environment.recorder.fault(call[0])}
        steps.append(_step(node, "failed").model_copy(update=told))
    return NodeRun("failed", steps=tuple(steps), faults=tuple(faults))


def _empty(environment: Environment, node: Node) -> Step:
    """Return the step of a node that mapped over nothing."""
    kept = environment.recorder.value([])
    shown = {"output": kept.value, "output_digest": kept.digest}
    return _step(node, "succeeded").model_copy(update=shown)


def _step(node: Node, outcome: Outcome) -> Step:
    skill = node.skill.name if node.skill is not None else None
    return Step(node=node.id, tool=node.tool, skill=skill, outcome=outcome)
