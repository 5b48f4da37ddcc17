"""A verified run becomes a candidate skill, `proposed` until it is admitted.

Paper: FlowEvo (compile; facts §3.5, §3.8). Differs: the body is data, a workflow, never code;
literals are lifted and linked, tests carry recorded calls, every upstream tool is pinned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from pydantic import JsonValue

from catalog.effects import EffectTable
from catalog.errors import SchemaRejected
from catalog.tools import Snapshot, Tool, ToolId
from server.compilation.choices import open_choices
from server.compilation.errors import NotCompilable
from server.compilation.folding import fold_repeats
from server.compilation.lifting import Lifted, declared_inputs, lift_literals
from server.compilation.linking import link_literals
from server.compilation.places import literal_places
from server.compilation.prose import render_description, render_guidance, skill_name
from server.compilation.recorded import loosened
from server.compilation.signature import compile_signature
from server.planning.literals import mentions
from skills_store.hints import derived_hints
from skills_store.skill import Pin, Planning, Provenance, RecordedCall, ReplayTest, Skill
from skills_store.trace import Trace, Verification
from skills_store.workflow.hashing import content_hash, shape_hash
from skills_store.workflow.model import Workflow
from skills_store.workflow.references import Scope, resolve

__all__ = ["Compiled", "Surroundings", "VerifiedRun", "compile_skill", "recorded_calls"]

_QUOTES = "'\"`“”"


@dataclass(frozen=True)
class VerifiedRun:
    """A run that was found right, with all that compiling it needs."""

    workflow: Workflow
    trace: Trace
    outputs: dict[str, JsonValue]
    """Declared outputs in full; the trace has large ones by digest only."""
    node_outputs: dict[str, JsonValue]
    """Full node outputs by id."""
    task: str | None
    inputs: dict[str, JsonValue]
    edits: tuple[str, ...] = ()
    """Readable edits of the repair that led here."""
    verifications: tuple[Verification, ...] = ()
    planning: Planning | None = None
    """What planning it cost, None where it was not planned from scratch."""
    is_recording: bool = False
    """Whether the workflow is calls in the order somebody made them, and nobody planned it."""


@dataclass(frozen=True)
class Surroundings:
    """What a skill is compiled against."""

    snapshot: Snapshot
    effects: EffectTable
    skills: Callable[[str, int], Skill | None]
    """Other skills by name and version, for what they are pinned to."""
    now: float
    """Unix seconds."""


@dataclass(frozen=True)
class Compiled:
    """The candidate, and what it holds as a constant although its task states it as a value."""

    skill: Skill
    frozen: tuple[str, ...] = ()
    is_linked: bool = False
    """Whether what the task says and an earlier output gave as well is data flow here, not an input."""


@dataclass(frozen=True)
class _Shaped:
    """A run as a general workflow: its data flow recovered, its values lifted."""

    lifted: Lifted
    outputs: dict[str, JsonValue]
    """Declared outputs of the run."""
    recorded: tuple[RecordedCall, ...]
    left_out: frozenset[str] = frozenset()
    """Nodes of the run that it no longer has: nothing reads their answers."""
    is_linked: bool = False


def compile_skill(
    run: VerifiedRun, name: str, around: Surroundings, *, explicit: bool
) -> tuple[Compiled, ...]:
    """Return the candidate skill of a verified run, in every reading that explains it.

    There are two where the task says a value that an earlier output gave as well: first with the
    value as an input, then with the data flow; the other way round where the input would leave a
    call unread. Runs on other inputs decide.

    Args:
        run: what was verified.
        name: legal name of the skill, or one that a legal name can be made of.
        around: the tools to pin and to type by, and their effect classes.
        explicit: whether a person asked for this skill, and so vouches for its constants.

    Raises:
        NotCompilable: there is no tool call, no output, a tool that is not in the snapshot, or a
            value in the task that no input carries.
        ValueError: the name has no legal form.
    """
    if run.trace.outputs is None or not run.workflow.outputs or not run.workflow.nodes:
        raise NotCompilable("the run has no outputs, or no tool made them")
    legal = skill_name(name)
    readings = [_shaped(run, around, said_too=False)]
    linked = _shaped(run, around, said_too=True)
    if linked.lifted.workflow != readings[0].lifted.workflow:
        readings.append(replace(linked, is_linked=True))
        # Every call was made for something: the reading that leaves out fewer goes first.
        readings.sort(key=lambda shaped: len(shaped.left_out))
    carried = [shaped for shaped in readings if explicit or not shaped.lifted.uncarried]
    if not carried:
        said = ", ".join(readings[0].lifted.uncarried)
        raise NotCompilable(f"the task says {said}, which no input carries: name it as an input, or save it")
    return tuple(
        Compiled(
            _skill(run, legal, shaped, around, explicit=explicit), _frozen(shaped, run), shaped.is_linked
        )
        for shaped in carried
    )


def _shaped(run: VerifiedRun, around: Surroundings, *, said_too: bool) -> _Shaped:
    task, known = run.task or "", run.node_outputs
    linked = link_literals(run.workflow, known, task, run.inputs, said_too=said_too)
    says = "" if declared_inputs(linked) else task
    folded = fold_repeats(linked, known, says, outputs_follow=run.is_recording)
    workflow = folded.workflow
    if run.is_recording:
        workflow = loosened(open_choices(workflow, folded.outputs), around.effects)
    lifted = lift_literals(
        workflow, task, run.inputs, around.snapshot, folded.given, records=run.is_recording
    )
    if not run.is_recording:
        return _Shaped(lifted, run.outputs, _moved(recorded_calls(run.trace), folded.moved, workflow))
    scope = Scope(inputs=lifted.inputs, outputs=folded.outputs)
    outputs = {name: resolve(value, scope) for name, value in workflow.outputs.items()}
    made = {folded.moved.get(node.id, (node.id, 0))[0]: node.id for node in run.workflow.nodes}
    left_out = frozenset(own for node, own in made.items() if workflow.node(node) is None)
    recorded = _moved(recorded_calls(run.trace), folded.moved, workflow)
    return _Shaped(lifted, outputs, recorded, left_out)


def _moved(
    calls: Iterable[RecordedCall], moved: Mapping[str, tuple[str, int]], workflow: Workflow
) -> tuple[RecordedCall, ...]:
    """Return the recorded calls under the nodes that make them now."""
    renamed: list[RecordedCall] = []
    for call in calls:
        node, item = moved.get(call.node, (call.node, call.item))
        if workflow.node(node) is not None:
            renamed.append(call.model_copy(update={"node": node, "item": item}))
    return tuple(renamed)


def _skill(run: VerifiedRun, name: str, shaped: _Shaped, around: Surroundings, *, explicit: bool) -> Skill:
    workflow = shaped.lifted.workflow.model_copy(update={"name": name})
    tools = _tools(workflow, around)
    try:
        signature = compile_signature(workflow, shaped.outputs, around.snapshot)
    except SchemaRejected as error:
        raise NotCompilable(f"its signature cannot be written down: {error}") from error
    effects = around.effects
    return Skill(
        name=workflow.name,
        version=1,
        state="proposed",
        reason="compiled; waits for evidence",
        title=workflow.name.replace("_", " ").capitalize(),
        description=render_description(workflow, signature),
        workflow=workflow,
        content_hash=content_hash(workflow),
        shape_hash=shape_hash(workflow),
        signature=signature,
        tests=(_original_test(shaped, run),),
        pins=tuple(Pin(tool=t.id, contract_hash=t.contract_hash, effect=effects.effect(t.id)) for t in tools),
        hints=derived_hints(tools, effects),
        guidance=render_guidance(run.task, workflow),
        provenance=_provenance(run, explicit=explicit),
        tags=tuple(sorted({tool.id.server for tool in tools})),
        created_at=around.now,
    )


def _frozen(shaped: _Shaped, run: VerifiedRun) -> tuple[str, ...]:
    """Return the task's values that decide on the result and that no input reaches.

    They stand inside longer texts of the workflow, or were given to a call that it no longer makes:
    then what that call answered may be a constant, where there is one that nothing explains.
    """
    kept = list(literal_places(shaped.lifted.workflow))
    left_out = [place for place in literal_places(run.workflow) if place.node in shaped.left_out]
    if all(isinstance(p.value, bool) or mentions(run.task or "", p.value) for p in kept):
        left_out = []
    texts = [str(place.value) for place in (*kept, *left_out) if not isinstance(place.value, bool)]
    return tuple(said for said in shaped.lifted.uncarried if any(_is_in(said, text) for text in texts))


def _is_in(said: str, text: str) -> bool:
    return said.strip(_QUOTES) in text


def _tools(workflow: Workflow, around: Surroundings) -> list[Tool]:
    """Return every tool the workflow calls, through skills too, ordered by id."""
    called: set[ToolId] = set()
    for node in workflow.nodes:
        called.update(node.tools)
        if node.skill is not None:
            inner = around.skills(node.skill.name, node.skill.version)
            if inner is None:
                raise NotCompilable(f"{node.target} is not there, so its tools cannot be pinned")
            called.update(pin.tool for pin in inner.pins)
    if not called and not any(node.code for node in workflow.nodes):
        raise NotCompilable("no node calls a tool")
    return [_known(tool, around.snapshot) for tool in sorted(called)]


def _known(tool: ToolId, snapshot: Snapshot) -> Tool:
    known = snapshot.get(tool)
    if known is None:
        raise NotCompilable(f"{tool} is not in the catalog, so it cannot be pinned")
    return known


def _original_test(shaped: _Shaped, run: VerifiedRun) -> ReplayTest:
    outputs = shaped.outputs if run.is_recording else run.trace.outputs or {}
    return ReplayTest(name="original", inputs=shaped.lifted.inputs, outputs=outputs, recorded=shaped.recorded)


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
        named=tuple(sorted(run.inputs)),
        plannings=() if run.planning is None else (run.planning,),
    )
