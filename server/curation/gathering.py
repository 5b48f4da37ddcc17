"""Gathering the evidence on which a candidate is judged: interface, replays, varied runs.

Judging is `skills_store.admission`. Paper: FlowEvo (gate; facts §3.5). Differs: the original run is
replayed in fresh processes of its own, what varies it in fresh ones that such runs share; varied runs
change one input at a time, so that each input is shown to matter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue

from catalog.labels import Label, labels_of
from catalog.schema import lint_schema
from catalog.tools import ToolId
from server.compilation.compile import recorded_calls
from server.compilation.lifting import declared_inputs
from server.curation.differences import differences, is_moment, value_at
from server.curation.metamorphic import broken_relation, pattern_variants
from server.curation.replaying import Replayer, was_stopped_by_the_world
from server.curation.variation import Variant, variants
from server.execution.environment import with_defaults
from server.execution.options import SkillResolver
from server.execution.run import Run
from server.verification import Checks, verify
from skills_store.evidence import Evidence, InterfaceFindings, Learning, ReplayResult, UsedTool, VariedRun
from skills_store.skill import ReplayTest, Skill
from skills_store.workflow.check import check_workflow
from skills_store.workflow.flows import check_flows
from skills_store.workflow.model import SkillRef

__all__ = ["Candidate", "Gathered", "differing_inputs", "gather_evidence"]

_ENOUGH_VARIED_RUNS = 2
_MOST_VARIED_RUNS = 24


@dataclass(frozen=True)
class Candidate:
    """A compiled skill before it is judged, with what is known from outside."""

    skill: Skill
    learning: Learning
    distinct_verified_traces: int = 1
    explicit_save: bool = False
    frozen_literals: tuple[str, ...] = ()
    """Values its task states that stand inside its constants."""
    examples: tuple[Mapping[str, JsonValue], ...] = ()
    """Other inputs that the caller knows to be valid; tried before made-up ones."""
    seen: Mapping[str, Sequence[JsonValue]] = field(default_factory=dict[str, Sequence[JsonValue]])
    """By input: values that the world is known to have; tried before made-up ones too."""


@dataclass(frozen=True)
class Gathered:
    """The evidence, and the skill with the tests it earned while it was gathered."""

    evidence: Evidence
    skill: Skill


async def gather_evidence(candidate: Candidate, replayer: Replayer) -> Gathered:
    """Return everything the gates look at; runs the candidate several times in fresh processes."""
    varied: list[VariedRun] = []
    tests: list[ReplayTest] = []
    async with replayer.sharing() as together:
        skill, replays = await _replayed(candidate.skill, replayer, together)
        if replays and all(result.passed for result in replays):
            varied, tests = await _varied(candidate, skill, together)
    evidence = Evidence(
        skill=skill,
        learning=candidate.learning,
        tools=tuple(_used_tools(skill, replayer)),
        interface=_interface(skill, replayer),
        replays=tuple(replays),
        varied=tuple(varied),
        frozen_literals=candidate.frozen_literals,
        verifications=skill.provenance.verifications,
        distinct_verified_traces=candidate.distinct_verified_traces,
        explicit_save=candidate.explicit_save,
    )
    return Gathered(evidence, skill.model_copy(update={"tests": (*skill.tests, *tests)}))


def _used_tools(skill: Skill, replayer: Replayer) -> list[UsedTool]:
    effects = replayer.effects
    return [
        UsedTool(pin.tool, effects.effect(pin.tool), effects.reset_mode(pin.tool.server))
        for pin in skill.pins
    ]


def _interface(skill: Skill, replayer: Replayer) -> InterfaceFindings:
    pinned = {pin.tool: pin.contract_hash for pin in skill.pins}
    called = dict.fromkeys(tool for node in skill.workflow.nodes for tool in node.tools)
    tools = {tool: replayer.snapshot.get(tool) for tool in called}
    return InterfaceFindings(
        schema_lint=(
            *lint_schema(skill.signature.input_schema),
            *lint_schema(skill.signature.output_schema),
        ),
        faults=tuple(check_workflow(skill.workflow, replayer.snapshot, skills=replayer.signatures)),
        unpinned=tuple(t for t, known in tools.items() if known and pinned.get(t) != known.contract_hash),
        flows=tuple(
            flow.message for flow in check_flows(skill.workflow, _labels(skill, replayer), replayer.labels)
        ),
        calls_itself=_calls_itself(skill, replayer.options.skills),
    )


def _calls_itself(skill: Skill, skills: SkillResolver) -> bool:
    """Return whether any version of a skill is reached from it, by its own nodes or through skills."""
    waiting, seen = [skill.workflow], set[SkillRef]()
    while waiting:
        for called in (node.skill for node in waiting.pop().nodes):
            if called is None or called in seen:
                continue
            if called.name == skill.name:
                return True
            seen.add(called)
            inner = skills(called.name, called.version)
            waiting += [inner] if inner is not None else []
    return False


def _labels(skill: Skill, replayer: Replayer) -> Mapping[ToolId, frozenset[Label]]:
    tools = (replayer.snapshot.get(pin.tool) for pin in skill.pins)
    return {
        tool.id: labels_of(tool, replayer.effects.effect(tool.id), replayer.labels) for tool in tools if tool
    }


async def _replayed(skill: Skill, alone: Replayer, together: Replayer) -> tuple[Skill, list[ReplayResult]]:
    """Return the skill with its volatile places marked, and the replays of its tests.

    A test that gives other outputs than recorded is run twice more: where those two differ too, or
    only the moment differs, the place is volatile.
    """
    tests: list[ReplayTest] = []
    results: list[ReplayResult] = []
    for test in skill.tests:
        replayer = alone if test.kind == "original" else together
        result = await replayer.replay(skill, test)
        if not result.passed and result.possible:
            test = await _with_volatile(skill, test, replayer)
            result = await replayer.replay(skill, test)
        tests.append(test)
        results.append(result)
    return skill.model_copy(update={"tests": tuple(tests)}), results


async def _with_volatile(skill: Skill, test: ReplayTest, replayer: Replayer) -> ReplayTest:
    one = await replayer.run(skill, test.inputs, test.recorded)
    two = await replayer.run(skill, test.inputs, test.recorded)
    if one.faults or two.faults:
        return test
    first, second = one.trace.outputs or {}, two.trace.outputs or {}
    moments = [
        place
        for place in differences(test.outputs, second)
        if is_moment(value_at(test.outputs, place)) and is_moment(value_at(second, place))
    ]
    volatile = dict.fromkeys((*test.volatile, *differences(first, second), *moments))
    return test.model_copy(update={"volatile": tuple(volatile)})


async def _varied(
    candidate: Candidate, skill: Skill, replayer: Replayer
) -> tuple[list[VariedRun], list[ReplayTest]]:
    """Return runs on other inputs and the tests made of the good ones; the world's faults are no runs."""
    original = skill.tests[0]
    runs = [_held_out(original, test) for test in skill.tests if test.kind == "held_out"]
    tests: list[ReplayTest] = []
    telling = pattern_variants(skill, original)
    for variant in [*telling, *_chosen(candidate, skill, original)][:_MOST_VARIED_RUNS]:
        run = await replayer.run(skill, variant.inputs, original.recorded)
        if was_stopped_by_the_world(run):
            continue
        done = _judged(skill, original, variant, run, replayer)
        runs.append(done)
        if done.is_good:
            tests.append(_test_of(variant, run, original, len(tests) + 1))
            if variant not in telling and _is_enough(runs, skill):
                break
    return runs, tests


def _held_out(original: ReplayTest, test: ReplayTest) -> VariedRun:
    """Return the run of a held-out instance, which was replayed before with success, as a varied one."""
    changed = tuple(sorted(differing_inputs(original.inputs, test.inputs)))
    volatile = (*original.volatile, *test.volatile)
    moved = bool(differences(original.outputs, test.outputs, apart_from=volatile))
    return VariedRun(test.inputs, changed, succeeded=True, outputs_changed=moved, detail="held out")


def _chosen(candidate: Candidate, skill: Skill, original: ReplayTest) -> list[Variant]:
    """Return variants in the order they are tried: given examples, then each input in turn."""
    given = [
        Variant(dict(example), changed)
        for example in candidate.examples
        if (changed := tuple(sorted(differing_inputs(original.inputs, example))))
    ]
    by_input = variants(original.inputs, skill.signature.input_schema, candidate.seen)
    most = max((len(found) for found in by_input.values()), default=0)
    in_turn = [found[i] for i in range(most) for found in by_input.values() if i < len(found)]
    return [*given, *in_turn]


def differing_inputs(one: Mapping[str, JsonValue], two: Mapping[str, JsonValue]) -> set[str]:
    """Return the names of the inputs in which two sets of inputs differ."""
    return {
        name
        for name in one.keys() | two.keys()
        if name not in one or name not in two or differences(one[name], two[name])
    }


def _is_enough(runs: Sequence[VariedRun], skill: Skill) -> bool:
    good = [run for run in runs if run.is_good]
    moved = {name for run in good if run.outputs_changed and len(run.changed) == 1 for name in run.changed}
    return len(good) >= _ENOUGH_VARIED_RUNS and moved >= set(declared_inputs(skill.workflow))


def _judged(skill: Skill, original: ReplayTest, variant: Variant, run: Run, replayer: Replayer) -> VariedRun:
    outputs = run.trace.outputs or {}
    detail = replayer.fault_of_output(skill, run)
    moved = not detail and bool(differences(original.outputs, outputs, apart_from=original.volatile))
    check_passed: bool | None = None
    if skill.workflow.expect and not detail:
        verdict = verify(run, skill.workflow, with_defaults(skill.workflow, variant.inputs), Checks())
        check_passed = verdict.is_verified
        detail = "; ".join(fault.message for fault in verdict.faults)
    if not detail and (broken := broken_relation(skill, variant.inputs, outputs)):
        check_passed, detail = False, broken
    return VariedRun(
        inputs=variant.inputs,
        changed=variant.changed,
        succeeded=not detail or check_passed is False,
        outputs_changed=moved,
        check_passed=check_passed,
        detail=detail,
        known_valid=variant.known_valid,
    )


def _test_of(variant: Variant, run: Run, original: ReplayTest, number: int) -> ReplayTest:
    return ReplayTest(
        name=f"varied_{number}",
        inputs=variant.inputs,
        outputs=run.trace.outputs or {},
        volatile=original.volatile,
        recorded=recorded_calls(run.trace),
        kind="varied",
    )
