"""Runs a workflow: each node as soon as what it waits for has finished, all within one limit.

Paper: EvoFlux (execution; facts §1.4). Differs: nodes start when their own dependencies have
finished rather than wave by wave, and a node that fails stops only what depends on it, so that
finished results are kept. What one node does is `server.execution.node`; whether a call happens
is the caller's.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass

import anyio

from catalog.canonical import JsonValue
from catalog.tools import Snapshot
from server.execution.calls import Caller
from server.execution.environment import Environment, Executed, NodeRun, with_defaults
from server.execution.node import run_node, unrun
from server.execution.options import RunOptions
from server.execution.reading import Read, Reader
from server.execution.recording import Recorder
from server.progress import Progress
from skills_store.trace import Status, Trace
from skills_store.workflow.check import check_inputs
from skills_store.workflow.faults import Cycle, Denied, Fault
from skills_store.workflow.graph import CycleFound, data_dependencies, dependencies, waves
from skills_store.workflow.hashing import content_hash
from skills_store.workflow.model import Node, Workflow, json_pointer
from skills_store.workflow.references import Found, Scope
from skills_store.workflow.scan import scan

__all__ = ["Run", "RunOptions", "execute_workflow"]


@dataclass(frozen=True, slots=True)
class Run:
    """One execution, in full where the trace is bounded and redacted."""

    trace: Trace
    outputs: dict[str, JsonValue]
    """Full outputs of the nodes that succeeded, by id."""
    faults: tuple[Fault, ...]
    """As found; those of the trace are redacted."""
    result: dict[str, JsonValue] | None
    """The workflow's declared outputs in full, None when one of them could not be produced."""


async def execute_workflow(
    workflow: Workflow,
    inputs: Mapping[str, JsonValue],
    caller: Caller,
    *,
    snapshot: Snapshot,
    options: RunOptions | None = None,
) -> Run:
    """Run a workflow to its end, and return what came of it, whatever came of it.

    Args:
        workflow: checked or not; its faults are found where they matter.
        inputs: values of its inputs; those left out take the default of their schema.
        caller: makes the calls.
        snapshot: the tools there are.
        options: None: all at their defaults.
    """
    chosen = options or RunOptions()
    started_at, started = chosen.clock(), anyio.current_time()
    environment = Environment(
        workflow=workflow,
        inputs=with_defaults(workflow, inputs),
        caller=caller,
        snapshot=snapshot,
        options=chosen,
        limiter=anyio.CapacityLimiter(chosen.concurrency),
        run_skill=_execute,
    )
    refused = check_inputs(workflow, dict(environment.inputs))
    executed = _unrun(workflow, refused) if refused else await _execute(environment)
    recorder = environment.recorder
    trace = Trace(
        id=chosen.id or uuid.uuid4().hex,
        workflow_hash=content_hash(workflow),
        inputs=await recorder.large_values(environment.inputs),
        steps=executed.steps,
        outputs=None if executed.result is None else await recorder.large_values(executed.result),
        faults=tuple(recorder.fault(fault) for fault in executed.faults),
        status=_status(executed),
        calls=environment.tally.calls,
        seconds=anyio.current_time() - started,
        started_at=started_at,
        task=_redacted_text(chosen.task, recorder),
        route=chosen.route,
        route_reasons=tuple(str(recorder.redact(reason)) for reason in chosen.route_reasons),
    )
    return Run(trace, executed.outputs, executed.faults, executed.result)


def _redacted_text(text: str | None, recorder: Recorder) -> str | None:
    return None if text is None else str(recorder.redact(text))


def _status(executed: Executed) -> Status:
    if any(isinstance(fault, Denied) and fault.needs_approval for fault in executed.faults):
        return "needs_approval"
    return "failed" if executed.faults or executed.result is None else "succeeded"


async def _execute(environment: Environment) -> Executed:
    try:
        order = waves(environment.workflow)
    except CycleFound as error:
        return _stuck(environment.workflow, error)
    running = _Running(environment, {node_id: n for n, wave in enumerate(order) for node_id in wave})
    async with anyio.create_task_group() as tasks:
        for node in environment.workflow:
            tasks.start_soon(running.node, node, name=f"node {node.id}")
    nodes = {node_id: running.finished[node_id] for wave in order for node_id in wave}
    return _with_outputs(environment, nodes)


def _stuck(workflow: Workflow, error: CycleFound) -> Executed:
    first = error.nodes[0]
    pointer = json_pointer("nodes", workflow.index(first))
    return _unrun(workflow, [Cycle(message=str(error), nodes=error.nodes, node=first, pointer=pointer)])


def _unrun(workflow: Workflow, faults: list[Fault]) -> Executed:
    return Executed({node.id: unrun(node, "not_reached") for node in workflow}, None, tuple(faults))


class _Running:
    """The nodes of one workflow under way."""

    def __init__(self, environment: Environment, wave: Mapping[str, int]) -> None:
        self.finished: dict[str, NodeRun] = {}
        self._environment = environment
        self._wave = wave
        self._waits_for = dependencies(environment.workflow)
        self._reads = data_dependencies(environment.workflow)
        self._ended = {node.id: anyio.Event() for node in environment.workflow}

    async def node(self, node: Node) -> None:
        """Wait for what a node depends on, run it, and let those that depend on it go on."""
        for dependency in self._waits_for[node.id]:
            await self._ended[dependency].wait()
        run = await self._run(node)
        wave = self._wave[node.id]
        steps = tuple(step.model_copy(update={"wave": wave}) for step in run.steps)
        self.finished[node.id] = NodeRun(run.outcome, run.output, steps, run.faults)
        self._ended[node.id].set()
        self._tell(node, run)

    async def _run(self, node: Node) -> NodeRun:
        outcomes = {name: self.finished[name].outcome for name in self._waits_for[node.id]}
        if any(outcome in ("failed", "not_reached") for outcome in outcomes.values()):
            return unrun(node, "not_reached")
        if any(outcomes[name] == "skipped" for name in self._reads[node.id]):
            return unrun(node, "skipped")
        outputs = {name: r.output for name, r in self.finished.items() if r.outcome == "succeeded"}
        return await run_node(self._environment, node, outputs)

    def _tell(self, node: Node, run: NodeRun) -> None:
        environment = self._environment
        path = ".".join((*environment.path, node.id))
        done = f"{len(self.finished)} of {len(self._ended)}"
        message = f"{path}: {node.target} {run.outcome.replace('_', ' ')} ({done})"
        environment.options.listener(Progress("run", message, calls=environment.tally.calls))


def _with_outputs(environment: Environment, nodes: dict[str, NodeRun]) -> Executed:
    """Return the run with its declared outputs, null where one reads a skipped node."""
    faults = [fault for run in nodes.values() for fault in run.faults]
    outputs = {name: run.output for name, run in nodes.items() if run.outcome == "succeeded"}
    reader = Reader(environment.workflow, Scope(environment.inputs, outputs))
    result: dict[str, JsonValue] = {}
    for name, value in environment.workflow.outputs.items():
        outcomes = {nodes[source].outcome for source in _sources(value) if source in nodes}
        if outcomes & {"failed", "not_reached"}:
            continue
        if "skipped" in outcomes:
            result[name] = None
            continue
        read = reader.read(value, json_pointer("outputs", name))
        if isinstance(read, Read):
            result[name] = read.value
        else:
            faults.append(read)
    is_complete = len(result) == len(environment.workflow.outputs)
    return Executed(nodes, result if is_complete else None, tuple(faults))


def _sources(value: JsonValue) -> set[str]:
    """Return the nodes that a value reads."""
    found = (part.reference for part in scan(value) if isinstance(part, Found))
    return {reference.name for reference in found if reference.root == "nodes"}
