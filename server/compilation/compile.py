"""A verified run becomes a candidate skill, `proposed` until it is admitted.

Paper: FlowEvo (compile; facts §3.5, §3.8). Differs: the body is data, a workflow, never code;
literals are lifted and linked, tests carry recorded calls, every upstream tool is pinned.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pydantic import JsonValue

from catalog.effects import Effect, EffectTable
from catalog.tools import Snapshot, Tool
from server.compilation.errors import NotCompilable
from server.compilation.lifting import Place, lift_literals
from server.compilation.linking import link_literals
from server.compilation.prose import render_description, render_guidance, skill_name
from server.compilation.signature import compile_signature
from skills_store.skill import Pin, Provenance, RecordedCall, ReplayTest, Skill, ToolHints
from skills_store.trace import Trace, Verification
from skills_store.workflow.hashing import content_hash, shape_hash
from skills_store.workflow.model import Workflow

__all__ = ["Compiled", "VerifiedRun", "compile_skill", "recorded_calls"]


@dataclass(frozen=True)
class VerifiedRun:
    """A run that was found right, with all that compiling it needs."""

    workflow: Workflow
    trace: Trace
    node_outputs: dict[str, JsonValue]
    """Full node outputs by id."""
    task: str | None
    inputs: dict[str, JsonValue]
    edits: tuple[str, ...] = ()
    """Readable edits of the repair that led here."""
    verifications: tuple[Verification, ...] = ()


@dataclass(frozen=True)
class Compiled:
    """The candidate, and the literals that stay frozen although the task says them."""

    skill: Skill
    frozen: tuple[Place, ...] = ()


def compile_skill(
    run: VerifiedRun, name: str, snapshot: Snapshot, effects: EffectTable, *, now: float, explicit: bool
) -> Compiled:
    """Return the candidate skill of a verified run.

    Args:
        run: what was verified.
        name: name wished for the skill.
        snapshot: the upstream tools, to pin and to type by.
        effects: their effect classes.
        now: Unix seconds.
        explicit: whether a person asked for this skill.

    Raises:
        NotCompilable: there is no tool call, no output, or a tool that is not in the snapshot.
        ValueError: the name has no legal form.
    """
    if run.trace.outputs is None or not run.workflow.outputs or not run.workflow.nodes:
        raise NotCompilable("the run has no outputs, or no tool made them")
    legal = skill_name(name)
    linked = link_literals(run.workflow, run.node_outputs, run.task or "", run.inputs)
    lifted = lift_literals(linked, run.task or "", run.inputs, snapshot)
    workflow = lifted.workflow.model_copy(update={"name": legal})
    tools = _tools(workflow, snapshot)
    signature = compile_signature(workflow, run.trace.outputs, snapshot)
    skill = Skill(
        name=legal,
        version=1,
        state="proposed",
        reason="compiled; waits for evidence",
        title=legal.replace("_", " ").capitalize(),
        description=render_description(workflow, signature),
        workflow=workflow,
        content_hash=content_hash(workflow),
        shape_hash=shape_hash(workflow),
        signature=signature,
        tests=(_original_test(run, lifted.inputs),),
        pins=tuple(Pin(tool=t.id, contract_hash=t.contract_hash, effect=effects.effect(t.id)) for t in tools),
        hints=_hints(tools, effects),
        guidance=render_guidance(run.task, workflow),
        provenance=_provenance(run, explicit=explicit),
        tags=tuple(sorted({tool.id.server for tool in tools})),
        created_at=now,
    )
    return Compiled(skill, lifted.frozen)


def _tools(workflow: Workflow, snapshot: Snapshot) -> list[Tool]:
    found: dict[str, Tool] = {}
    for node in workflow.nodes:
        if node.tool is None:
            continue
        tool = snapshot.get(node.tool)
        if tool is None:
            raise NotCompilable(f"{node.tool} is not in the catalog, so it cannot be pinned")
        found[str(tool.id)] = tool
    if not found:
        raise NotCompilable("no node calls a tool")
    return [found[key] for key in sorted(found)]


def _original_test(run: VerifiedRun, inputs: dict[str, JsonValue]) -> ReplayTest:
    return ReplayTest(
        name="original", inputs=inputs, outputs=run.trace.outputs or {}, recorded=recorded_calls(run.trace)
    )


def recorded_calls(trace: Trace) -> tuple[RecordedCall, ...]:
    """Return the successful upstream calls of a trace, as tests keep them."""
    return tuple(
        RecordedCall(
            node=step.node,
            item=step.item,
            tool=step.tool,
            arguments=step.arguments,
            output=step.output,
            output_digest=step.output_digest,
        )
        for step in trace.steps
        if step.outcome == "succeeded" and step.tool is not None
    )


def _provenance(run: VerifiedRun, *, explicit: bool) -> Provenance:
    return Provenance(
        task=run.task,
        traces=(run.trace.id,),
        edits=run.edits,
        verifications=run.verifications,
        explicit_save=explicit,
    )


def _hints(tools: Iterable[Tool], effects: EffectTable) -> ToolHints:
    """Return annotations: read-only if all tools are free, destructive if any may destroy."""
    classes = [effects.effect(tool.id) for tool in tools]
    costly = [tool for tool in tools if not effects.effect(tool.id).is_free]
    return ToolHints(
        read_only=not costly,
        destructive=any(tool.annotations.destructive is not False for tool in costly),
        idempotent=all(effect is Effect.PURE for effect in classes),
        open_world=any(
            effects.effect(t.id) is not Effect.PURE and t.annotations.open_world is not False for t in tools
        ),
    )
