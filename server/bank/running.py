"""Checking and running workflows: one document, once, under the effect policy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue

from catalog.effects import Activity
from catalog.tools import Snapshot
from server.bank.context import UNUSABLE, Context, allowing
from server.bank.traces import judged_trace, shown_outputs
from server.execution.environment import with_defaults
from server.execution.episode import Episode
from server.execution.run import execute_workflow
from server.reports import CheckReport, RunReport
from server.telemetry import record_evaluation, span
from server.verification import Checks, verify
from skills_store.errors import MalformedWorkflow
from skills_store.skill import Signature
from skills_store.trace import Trace
from skills_store.workflow.check import check_inputs, check_workflow
from skills_store.workflow.faults import Fault, ServerUnavailableFault, UnknownTool
from skills_store.workflow.hashing import content_hash
from skills_store.workflow.model import Workflow, json_pointer, parse_workflow

__all__ = [
    "Executed",
    "Planned",
    "check_document",
    "execute",
    "input_faults",
    "run_document",
    "run_report",
    "servers_of",
    "signatures_of",
    "static_faults",
    "unreachable_faults",
]


def servers_of(workflow: Workflow, context: Context) -> frozenset[str]:
    """Return the servers a workflow calls, through skills too."""
    found: set[str] = set()
    waiting = [workflow]
    seen: set[tuple[str, int]] = set()
    while waiting:
        for node in waiting.pop().nodes:
            found.update(tool.server for tool in node.tools)
            if node.skill is not None and (node.skill.name, node.skill.version) not in seen:
                seen.add((node.skill.name, node.skill.version))
                inner = context.skill_workflow(node.skill.name, node.skill.version)
                waiting.extend([inner] if inner else [])
    return frozenset(found)


def static_faults(workflow: Workflow, snapshot: Snapshot, context: Context) -> list[Fault]:
    """Return the static faults of a workflow, skill nodes checked against their signatures."""
    return check_workflow(workflow, snapshot, skills=signatures_of(workflow, context))


def signatures_of(workflow: Workflow, context: Context) -> Mapping[str, Signature]:
    """Return the signatures of the skill versions that a workflow calls and may call."""
    named = {(node.skill.name, node.skill.version) for node in workflow.nodes if node.skill}
    found = [context.store.version(*key) for key in sorted(named)]
    usable = [skill for skill in found if skill is not None and skill.state not in UNUSABLE]
    return {f"{skill.name}@{skill.version}": skill.signature for skill in usable}


def unreachable_faults(workflow: Workflow, snapshot: Snapshot, context: Context) -> list[Fault]:
    """Return a fault for each node whose configured server never listed its tools, by name.

    Call it after connecting. A server that is away and whose tools are known is found by the run.
    """
    reports = {report.name: report for report in context.connections.reports()}
    faults: list[Fault] = []
    for index, node in enumerate(workflow.nodes):
        if node.tool is None or node.tool.server in snapshot.servers or node.tool.server not in reports:
            continue
        report = reports[node.tool.server]
        if report.status == "ready":
            continue
        why = "; ".join(report.problems) or f"it is {report.status}"
        faults.append(
            ServerUnavailableFault(
                message=f"server {node.tool.server!r} cannot be reached: {why}",
                node=node.id,
                pointer=json_pointer("nodes", index, "tool"),
                tool=node.tool,
            )
        )
    return faults


def input_faults(workflow: Workflow, inputs: Mapping[str, JsonValue]) -> list[Fault]:
    """Return the faults of input values, those left out taking their default."""
    return check_inputs(workflow, with_defaults(workflow, inputs))


def connected_faults(workflow: Workflow, snapshot: Snapshot, context: Context) -> list[Fault]:
    """Return the static faults after connecting: a tool of a server that is away is not unknown."""
    away = unreachable_faults(workflow, snapshot, context)
    places = {fault.pointer for fault in away}
    static = [
        fault
        for fault in static_faults(workflow, snapshot, context)
        if not (isinstance(fault, UnknownTool) and fault.pointer in places)
    ]
    return [*static, *away]


async def check_document(document: object, context: Context, *, connect: bool) -> CheckReport:
    """Return every static fault of a document, against stored tools or, with `connect`, live ones."""
    try:
        workflow = parse_workflow(document)
        unknown: list[Fault] = []
    except MalformedWorkflow as error:
        if error.rest is None:
            return CheckReport(faults=tuple(error.faults))
        workflow, unknown = error.rest, error.faults
    servers = servers_of(workflow, context)
    snapshot = await context.snapshot(servers) if connect else context.known()
    found = connected_faults if connect else static_faults
    return CheckReport(
        faults=(*unknown, *found(workflow, snapshot, context)),
        warnings=tuple(_unlisted(servers, snapshot, context, connect=connect)),
    )


def _unlisted(
    servers: Iterable[str], snapshot: Snapshot, context: Context, *, connect: bool
) -> Iterable[str]:
    for server in sorted(set(servers) - snapshot.servers):
        if server not in context.config.servers:
            yield f"server {server!r} is not configured: `skillbank add {server} -- COMMAND`"
        elif connect:
            yield f"server {server!r} lists no tools: `skillbank doctor` says what is wrong with it"
        else:
            yield f"server {server!r} was never listed: run `skillbank doctor`, or check with --connect"


@dataclass(frozen=True, slots=True)
class Planned:
    """One execution that is wanted: of what, on what, and what counts as right."""

    workflow: Workflow
    inputs: Mapping[str, JsonValue]
    checks: Checks = field(default_factory=Checks)
    activity: Activity = Activity.FIRST_RUN
    task: str | None = None
    route: str | None = None
    """Which way the task went, None where none was to be chosen."""
    route_reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Executed:
    """One execution with its verdict: the trace as it is kept, and the outputs in full."""

    trace: Trace
    outputs: dict[str, JsonValue] | None


async def execute(planned: Planned, episode: Episode, snapshot: Snapshot, context: Context) -> Executed:
    """Run a workflow as one candidate of an episode, verify it and keep its trace."""
    workflow, hashed = planned.workflow, content_hash(planned.workflow)
    described = {"gen_ai.workflow.name": workflow.name, "skillbank.action_hash": hashed}
    async with episode.candidate(planned.activity) as caller:
        with span(f"invoke_workflow {workflow.name}", "invoke_workflow", described) as current:
            current.set_attribute("skillbank.route", planned.route or "")
            run = await execute_workflow(
                workflow,
                dict(planned.inputs),
                caller,
                snapshot=snapshot,
                options=context.options(planned.task, planned.route, planned.route_reasons),
            )
            verdict = verify(run, workflow, with_defaults(workflow, planned.inputs), planned.checks)
            current.set_attribute("skillbank.status", verdict.status)
            for said in verdict.verifications:
                record_evaluation(said.by, passed=said.passed)
    trace = judged_trace(run.trace, planned.workflow, verdict, context)
    context.store.add_trace(trace)
    return Executed(trace, await shown_outputs(run.result, context))


async def run_document(
    document: object,
    inputs: Mapping[str, JsonValue],
    checks: Checks,
    context: Context,
    allow: tuple[str, ...] = (),
) -> RunReport:
    """Execute a document once and verify it; a document with static faults is not executed."""
    try:
        workflow = parse_workflow(document)
    except MalformedWorkflow as error:
        return RunReport(status="failed", outputs=None, faults=tuple(error.faults))
    effects = allowing(context.effects, allow)
    snapshot = await context.snapshot(servers_of(workflow, context))
    faults = [*input_faults(workflow, inputs), *connected_faults(workflow, snapshot, context)]
    if faults:
        return RunReport(status="failed", outputs=None, faults=tuple(faults))
    episode = context.episode(snapshot, effects)
    episode.set_plan(workflow, context.skill_workflow)
    executed = await execute(Planned(workflow, inputs, checks), episode, snapshot, context)
    return run_report(executed, episode)


def run_report(executed: Executed, episode: Episode) -> RunReport:
    """Return the report of one executed workflow."""
    trace = executed.trace
    return RunReport(
        status=trace.status,
        outputs=executed.outputs,
        faults=trace.faults,
        calls=episode.calls,
        seconds=trace.seconds,
        trace=trace.steps,
        trace_id=trace.id,
        not_repeated=tuple(episode.not_repeated),
        verifications=trace.verifications,
    )
