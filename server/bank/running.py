"""Checking and running workflows: one document, once, under the effect policy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pydantic import JsonValue

from catalog.effects import Activity
from catalog.tools import Snapshot
from server.bank.context import Context, allowing
from server.execution.episode import Episode
from server.execution.run import Run, execute_workflow
from server.reports import CheckReport, RunReport
from server.verification import Checks, Verdict, verify
from skills_store.errors import MalformedWorkflow
from skills_store.skill import Signature
from skills_store.workflow.check import check_inputs, check_workflow
from skills_store.workflow.faults import Fault
from skills_store.workflow.model import Workflow, parse_workflow

__all__ = ["check_document", "execute_checked", "run_document", "run_report", "servers_of", "static_faults"]


def servers_of(workflow: Workflow, context: Context) -> frozenset[str]:
    """Return the servers a workflow calls, through skills too."""
    found: set[str] = set()
    waiting = [workflow]
    seen: set[tuple[str, int]] = set()
    while waiting:
        for node in waiting.pop().nodes:
            if node.tool is not None:
                found.add(node.tool.server)
            elif node.skill is not None and (node.skill.name, node.skill.version) not in seen:
                seen.add((node.skill.name, node.skill.version))
                inner = context.skill_workflow(node.skill.name, node.skill.version)
                waiting.extend([inner] if inner else [])
    return frozenset(found)


def static_faults(workflow: Workflow, snapshot: Snapshot, context: Context) -> list[Fault]:
    """Return the static faults of a workflow, skill nodes checked against their signatures."""
    return check_workflow(workflow, snapshot, skills=_signatures(workflow, context))


def _signatures(workflow: Workflow, context: Context) -> Mapping[str, Signature]:
    named = {(node.skill.name, node.skill.version) for node in workflow.nodes if node.skill}
    found = {key: context.store.version(*key) for key in named}
    return {f"{skill.name}@{skill.version}": skill.signature for skill in found.values() if skill is not None}


async def check_document(document: object, context: Context, *, connect: bool) -> CheckReport:
    """Return every static fault of a document, against stored tools or, with `connect`, live ones."""
    try:
        workflow = parse_workflow(document)
    except MalformedWorkflow as error:
        return CheckReport(faults=tuple(error.faults))
    servers = servers_of(workflow, context)
    snapshot = await context.snapshot(servers) if connect else context.known()
    return CheckReport(
        faults=tuple(static_faults(workflow, snapshot, context)),
        warnings=tuple(_never_listed(servers, snapshot, context)),
    )


def _never_listed(servers: Iterable[str], snapshot: Snapshot, context: Context) -> Iterable[str]:
    for server in sorted(set(servers) - snapshot.servers):
        if server in context.config.servers:
            yield f"server {server!r} was never listed: run `skillbank doctor`, or check with --connect"
        else:
            yield f"server {server!r} is not configured: `skillbank add {server} -- COMMAND`"


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
    snapshot = await context.snapshot(servers_of(workflow, context))
    faults = [*check_inputs(workflow, dict(inputs)), *static_faults(workflow, snapshot, context)]
    if faults:
        return RunReport(status="failed", outputs=None, faults=tuple(faults))
    episode = context.episode(snapshot, allowing(context.config.effects, allow))
    episode.set_plan(workflow, context.skill_workflow)
    run, verdict = await execute_checked(workflow, inputs, checks, context, episode, snapshot)
    return run_report(run, verdict, episode)


async def execute_checked(
    workflow: Workflow,
    inputs: Mapping[str, JsonValue],
    checks: Checks,
    context: Context,
    episode: Episode,
    snapshot: Snapshot,
    *,
    activity: Activity = Activity.FIRST_RUN,
    task: str | None = None,
) -> tuple[Run, Verdict]:
    """Run a workflow as one candidate of an episode, verify it and keep its trace."""
    async with episode.candidate(activity) as caller:
        run = await execute_workflow(
            workflow, dict(inputs), caller, snapshot=snapshot, options=context.options(task)
        )
    verdict = verify(run, workflow, dict(inputs), checks)
    kept = run.trace.model_copy(
        update={
            "status": verdict.status,
            "faults": tuple(verdict.faults),
            "verifications": tuple(verdict.verifications),
        }
    )
    context.store.add_trace(kept)
    return run, verdict


def run_report(run: Run, verdict: Verdict, episode: Episode) -> RunReport:
    """Return the report of one executed workflow."""
    return RunReport(
        status=verdict.status,
        outputs=run.trace.outputs,
        faults=tuple(verdict.faults),
        calls=episode.calls,
        seconds=run.trace.seconds,
        trace=run.trace.steps,
        trace_id=run.trace.id,
        not_repeated=tuple(episode.not_repeated),
        verifications=tuple(verdict.verifications),
    )
