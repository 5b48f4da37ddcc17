"""Gathering the evidence on which a candidate is judged: duplicates, interface, replays, varied runs.

Judging is `skills_store.admission`. Paper: FlowEvo (gate; facts §3.5). Differs: replays run in
fresh processes; varied runs change one input at a time, so that each input is shown to matter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from catalog.schema import lint_schema
from server.compilation.compile import recorded_calls
from server.curation.replaying import Replayer, volatile_pointers
from server.curation.variation import Variant, variants
from skills_store.evidence import Evidence, InterfaceFindings, Learning, ReplayResult, UsedTool, VariedRun
from skills_store.skill import ReplayTest, Skill
from skills_store.workflow.check import check_workflow

__all__ = ["Candidate", "Gathered", "gather_evidence"]

_VARIED_RUNS = 8


@dataclass(frozen=True)
class Candidate:
    """A compiled skill before it is judged, with what is known from outside."""

    skill: Skill
    learning: Learning
    duplicate_of: str | None = None
    distinct_verified_traces: int = 1
    explicit_save: bool = False
    examples: tuple[Mapping[str, JsonValue], ...] = ()
    """Other inputs that the caller knows to be valid; tried before made-up ones."""


@dataclass(frozen=True)
class Gathered:
    """The evidence, and the skill with the tests it earned while it was gathered."""

    evidence: Evidence
    skill: Skill


async def gather_evidence(candidate: Candidate, replayer: Replayer) -> Gathered:
    """Return everything the gates look at; runs the candidate several times in fresh processes."""
    skill, replays = await _replayed(candidate.skill, replayer)
    varied: list[VariedRun] = []
    tests: list[ReplayTest] = []
    if replays and all(result.passed for result in replays):
        varied, tests = await _varied(candidate, skill, replayer)
    evidence = Evidence(
        skill=skill,
        learning=candidate.learning,
        tools=tuple(_used_tools(skill, replayer)),
        interface=_interface(skill, replayer),
        duplicate_of=candidate.duplicate_of,
        replays=tuple(replays),
        varied=tuple(varied),
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
    called = dict.fromkeys(node.tool for node in skill.workflow.nodes if node.tool)
    tools = {tool: replayer.snapshot.get(tool) for tool in called}
    return InterfaceFindings(
        schema_lint=(
            *lint_schema(skill.signature.input_schema),
            *lint_schema(skill.signature.output_schema),
        ),
        faults=tuple(check_workflow(skill.workflow, replayer.snapshot)),
        unpinned=tuple(t for t, known in tools.items() if known and pinned.get(t) != known.contract_hash),
        calls_itself=any(node.skill and node.skill.name == skill.name for node in skill.workflow.nodes),
    )


async def _replayed(skill: Skill, replayer: Replayer) -> tuple[Skill, list[ReplayResult]]:
    """Return the skill with its volatile places marked, and the replays of its tests.

    The first replay finds what differs between equal runs, when a second one differs there too.
    """
    tests: list[ReplayTest] = []
    results: list[ReplayResult] = []
    for test in skill.tests:
        first = await replayer.replay(skill, test)
        if not first.passed and first.possible:
            test = await _with_volatile(skill, test, replayer)
            first = await replayer.replay(skill, test)
        tests.append(test)
        results.append(first)
    return skill.model_copy(update={"tests": tuple(tests)}), results


async def _with_volatile(skill: Skill, test: ReplayTest, replayer: Replayer) -> ReplayTest:
    one, two = await replayer.run(skill, test.inputs), await replayer.run(skill, test.inputs)
    if one.faults or two.faults:
        return test
    places = volatile_pointers(one.trace.outputs or {}, two.trace.outputs or {})
    return test.model_copy(update={"volatile": tuple(places)})


async def _varied(
    candidate: Candidate, skill: Skill, replayer: Replayer
) -> tuple[list[VariedRun], list[ReplayTest]]:
    original = skill.tests[0]
    runs: list[VariedRun] = []
    tests: list[ReplayTest] = []
    for variant in _chosen(candidate, skill, original):
        done, test = await _run_variant(skill, original, variant, replayer, len(tests) + 1)
        runs.append(done)
        tests.extend([test] if test else [])
        if done.is_good and _is_enough(runs, original):
            break
    return runs, tests


def _chosen(candidate: Candidate, skill: Skill, original: ReplayTest) -> list[Variant]:
    """Return variants in the order they are tried: given examples, then each input in turn."""
    given = [
        Variant(dict(example), ",".join(k for k in example if example[k] != original.inputs.get(k)))
        for example in candidate.examples
    ]
    by_input = variants(original.inputs, skill.signature.input_schema)
    most = max((len(found) for found in by_input.values()), default=0)
    in_turn = [found[i] for i in range(most) for found in by_input.values() if i < len(found)]
    return [*given, *in_turn]


def _is_enough(runs: Sequence[VariedRun], original: ReplayTest) -> bool:
    good = [run for run in runs if run.is_good]
    moved = {name for run in good if run.outputs_changed and len(run.changed) == 1 for name in run.changed}
    return (len(good) >= 2 and moved >= set(original.inputs)) or len(runs) >= _VARIED_RUNS * max(
        1, len(original.inputs)
    )


async def _run_variant(
    skill: Skill, original: ReplayTest, variant: Variant, replayer: Replayer, number: int
) -> tuple[VariedRun, ReplayTest | None]:
    run = await replayer.run(skill, variant.inputs)
    detail = replayer.fault_of_output(skill, run)
    differs = [
        place
        for place in volatile_pointers(original.outputs, run.trace.outputs or {})
        if not any(place == known or place.startswith(f"{known}/") for known in original.volatile)
    ]
    varied = VariedRun(
        inputs=variant.inputs,
        changed=tuple(variant.changed.split(",")),
        succeeded=not detail,
        outputs_changed=not detail and bool(differs),
        detail=detail,
    )
    if detail:
        return varied, None
    return varied, ReplayTest(
        name=f"varied_{number}",
        inputs=variant.inputs,
        outputs=run.trace.outputs or {},
        volatile=original.volatile,
        recorded=recorded_calls(run.trace),
        kind="varied",
    )
