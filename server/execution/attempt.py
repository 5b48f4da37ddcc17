"""Makes one prepared call, of a tool, of a skill's workflow or of code, and records what came of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

import anyio

from catalog.canonical import JsonValue
from catalog.effects import Effect
from catalog.result import CallFailure, CallSuccess, FailureKind
from server.execution.calls import CallRequest
from server.execution.code import Granted, run_code
from server.execution.environment import Environment, Executed
from server.execution.expectations import Reached, check_expectations
from server.execution.failures import Place, faults_of
from server.execution.preparation import Prepared
from skills_store.trace import Step
from skills_store.workflow.faults import Fault
from skills_store.workflow.model import Code, Node, SkillRef, Workflow

__all__ = ["Attempt", "call_code", "call_skill", "call_tool"]

_COSTLIEST_LAST = (Effect.PURE, Effect.READ, Effect.WRITE, Effect.UNKNOWN)


@dataclass(frozen=True, slots=True)
class Attempt:
    """What came of one call. `output` means something only without faults."""

    output: JsonValue
    steps: tuple[Step, ...]
    faults: tuple[Fault, ...] = ()


async def call_tool(environment: Environment, node: Node, prepared: Prepared) -> Attempt:
    """Call the node's tool and return what came of it."""
    request = _request(environment, node, prepared)
    async with environment.limiter:
        answer = await environment.caller.call(request)
    environment.tally.calls += answer.calls
    outcome, recorder = answer.outcome, environment.recorder
    step = (await _step(environment, node, prepared)).model_copy(
        update={"seconds": outcome.seconds, "effect": answer.effect, "from_memory": answer.from_memory}
    )
    if isinstance(outcome, CallSuccess):
        try:
            kept = await recorder.large_value(outcome.output)
        except ValueError as error:
            message = f"the answer is no JSON value: {error}"
            outcome = CallFailure(FailureKind.OUTPUT_SCHEMA_MISMATCH, message, outcome.seconds)
        else:
            shown = {"outcome": "succeeded", "output": kept.value, "output_digest": kept.digest}
            return Attempt(outcome.output, (step.model_copy(update=shown),))
    faults = faults_of(outcome, prepared.call, prepared.place, needs_approval=answer.needs_approval)
    told = {"fault": recorder.fault(faults[0]), "content": await recorder.large_content(outcome.content)}
    return Attempt(None, (step.model_copy(update=told),), tuple(faults))


def _request(environment: Environment, node: Node, prepared: Prepared) -> CallRequest:
    item = prepared.place.item
    return CallRequest(
        node=".".join((*environment.path, node.id)),
        item=item,
        tool=prepared.call.tool,
        arguments=prepared.call.arguments,
        timeout_seconds=node.timeout_seconds or environment.options.timeout_seconds,
        items=environment.items if item is None else (*environment.items, item),
    )


async def _step(environment: Environment, node: Node, prepared: Prepared) -> Step:
    """Return the step of a call that has failed until it is known to have succeeded."""
    recorder = environment.recorder
    return Step(
        node=node.id,
        item=prepared.place.item,
        tool=node.tool,
        skill=node.skill.name if node.skill is not None else None,
        arguments=await recorder.large_values(prepared.call.arguments),
        outcome="failed",
        coercions=recorder.coercions(prepared.coerced),
    )


async def call_code(environment: Environment, node: Node, prepared: Prepared, code: Code) -> Attempt:
    """Run the node's code in its sandbox; the calls it makes are recorded under the node."""
    step = await _step(environment, node, prepared)
    granted = Granted(environment, node, code, prepared.place)
    ran = await run_code(code, prepared.call.arguments, granted, environment.options.sandbox)
    effects = [call.effect for call in granted.steps] or [Effect.PURE]
    step = step.model_copy(update={"seconds": ran.seconds, "effect": max(effects, key=_COSTLIEST_LAST.index)})
    if faults := granted.faults(ran.fault):
        told = {"fault": environment.recorder.fault(faults[0])}
        return Attempt(None, (*granted.steps, step.model_copy(update=told)), faults)
    kept = await environment.recorder.large_value(ran.value)
    shown = {"outcome": "succeeded", "output": kept.value, "output_digest": kept.digest}
    return Attempt(ran.value, (*granted.steps, step.model_copy(update=shown)))


async def call_skill(environment: Environment, node: Node, prepared: Prepared, skill: Workflow) -> Attempt:
    """Run the workflow of the node's skill; its steps are recorded under the node.

    A timeout of the node bounds each of the skill's calls.
    """
    started = anyio.current_time()
    inside = environment.inside(skill, prepared.call.arguments, node.id, prepared.place.item)
    if node.timeout_seconds is not None:
        inside = replace(inside, options=replace(inside.options, timeout_seconds=node.timeout_seconds))
    executed = await environment.run_skill(inside)
    reference = cast("SkillRef", node.skill)
    faults = tuple(_seen_from_outside(f, reference, prepared.place) for f in _faults(executed, inside))
    steps = tuple(_under(step, reference, prepared.place) for step in executed.steps)
    effects = [step.effect for step in steps if step.tool is not None] or [Effect.PURE]
    own = (await _step(environment, node, prepared)).model_copy(
        update={
            "seconds": anyio.current_time() - started,
            "effect": max(effects, key=_COSTLIEST_LAST.index),
        }
    )
    if faults:
        told = own.model_copy(update={"fault": environment.recorder.fault(faults[0])})
        return Attempt(None, (*steps, told), faults)
    output = cast("JsonValue", executed.result)
    kept = await environment.recorder.large_value(output)
    shown = {"outcome": "succeeded", "output": kept.value, "output_digest": kept.digest}
    return Attempt(output, (*steps, own.model_copy(update=shown)))


def _faults(executed: Executed, inside: Environment) -> list[Fault]:
    if executed.faults:
        return list(executed.faults)
    reached = Reached(cast("JsonValue", executed.result), inside.inputs, executed.outputs)
    return list(check_expectations(inside.workflow.expect, reached, "/expect"))


def _seen_from_outside(fault: Fault, skill: SkillRef, place: Place) -> Fault:
    """Return a fault inside a skill as one of the node that calls it: its kind stays, its place does not."""
    inner = f", node {fault.node}" if fault.node is not None else ""
    return fault.model_copy(
        update={
            "message": f"skill {skill.name}@{skill.version}{inner}: {fault.message}",
            "node": place.node,
            "pointer": place.at(),
            "item": place.item,
        }
    )


def _under(step: Step, skill: SkillRef, place: Place) -> Step:
    """Return a step inside a skill as one of the node that calls it."""
    item = place.item if place.item is not None else step.item
    return step.model_copy(update={"node": place.node, "item": item, "skill": skill.name})
