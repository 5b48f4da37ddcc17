"""What runs showed of a candidate: that it gives again what it gave, on other inputs too, and no constant."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from catalog.canonical import JsonValue
from skills_store.admission.finding import Finding, costly_tools, faultless, listed, on_inputs, shown
from skills_store.admission.inputs import input_names, reached
from skills_store.code.lint import constant_body
from skills_store.evidence import Evidence
from skills_store.skill import SkillState
from skills_store.workflow.graph import output_nodes

__all__ = ["MINIMUM_VARIED_RUNS", "ONE_READING", "function", "trivial"]

MINIMUM_VARIED_RUNS = 2
ONE_READING = "one_reading"
"""Name of the check that no other reading of the run holds as well."""


def function(evidence: Evidence) -> Iterable[Finding]:
    yield _verified(evidence)
    yield _replayed(evidence)
    names = input_names(evidence.skill.workflow)
    yield _varied(evidence, names)
    yield reached(evidence, names)
    frozen = [f"the task's {literal} is a constant in the workflow" for literal in evidence.frozen_literals]
    yield faultless("no_frozen_literals", "function", frozen, leaves="context_only")
    guessed = [f"nobody said that {name!r} may vary: run it with another value" for name in evidence.unsaid]
    yield faultless("inputs_said", "function", guessed, leaves="proposed")
    undecided = [evidence.undecided] if evidence.undecided else []
    yield faultless(ONE_READING, "function", undecided, leaves="proposed")


def _verified(evidence: Evidence) -> Finding:
    """Paper: FlowEvo (compile): only traces that the verifier passed.

    Differs: a judge's or a later opinion alone is enough for guidance only; a person who saves a
        run explicitly vouches for it.
    """
    said = evidence.verifications
    inputs: JsonValue = [{"by": v.by, "passed": v.passed, "detail": v.detail} for v in said]

    def finding(leaves: SkillState, detail: str) -> Finding:
        return Finding("verified", "function", leaves, detail, inputs)

    if against := [v for v in said if not v.passed]:
        return finding("shadow", "; ".join(f"{v.by} says no: {v.detail}".rstrip(": ") for v in against))
    firm = sorted({v.by for v in said if v.by not in ("judge", "feedback")})
    if firm:
        return finding("active", f"verified by {', '.join(firm)}")
    if evidence.explicit_save:
        return finding("active", "vouched for by an explicit save")
    if said:
        return finding("context_only", "only opinions say that it was right: no check, no replay")
    return finding("proposed", "nothing has verified the run it was made from")


def _replayed(evidence: Evidence) -> Finding:
    """Paper: FlowEvo (gate 1, `fresh_world_source_replay`): replay in a clean world.

    Differs: without a replay it does not pass; a tool that may not be called again makes the skill
        a person's to judge, not the system's.
    """
    replays = evidence.replays
    inputs: JsonValue = [
        {"test": r.test, "inputs": dict(r.inputs), "passed": r.passed, "isolated": r.isolated}
        for r in replays
    ]
    seconds = sum(replay.seconds for replay in replays)

    def finding(leaves: SkillState, detail: str) -> Finding:
        return Finding("replay", "function", leaves, detail, inputs, seconds)

    ran = [replay for replay in replays if replay.possible]
    if wrong := [r for r in ran if not r.passed]:
        return finding("shadow", "; ".join(f"replay of {r.test} failed: {r.detail}" for r in wrong))
    if costly := costly_tools(evidence.tools):
        return finding("proposed", f"cannot be replayed: {listed(costly)} may not run again")
    if any(not tool.effect.is_free for tool in evidence.tools) and not all(r.isolated for r in ran):
        return finding("proposed", "replayed, but not in a fresh process")
    if unrun := [f"{r.test}: {r.detail}".rstrip(": ") for r in replays if not r.possible]:
        return finding("context_only", f"cannot be replayed: {'; '.join(unrun)}")
    tried = {replay.test for replay in replays}
    if missing := [test.name for test in evidence.skill.tests if test.name not in tried]:
        return finding("proposed", f"not replayed yet: {', '.join(missing)}")
    if not ran:
        return finding("context_only", "cannot be replayed: it has no replay test")
    return finding("active", f"{len(ran)} of {len(ran)} replays gave the recorded outputs")


def _varied(evidence: Evidence, names: Sequence[str]) -> Finding:
    """Paper: FlowEvo (gate 2, `same_family_perturbation_replay`): metamorphic variants by pattern.

    Differs: variants come from the input schema and from what was seen; that there are none that
        are known to be valid makes the skill wait and names the inputs; that fewer than two work
        makes it guidance only.
    """
    runs = evidence.varied
    inputs: JsonValue = [shown(run) for run in runs]

    def finding(leaves: SkillState, detail: str) -> Finding:
        return Finding("varied_runs", "function", leaves, detail, inputs)

    if not names:
        return finding("active", "it has no inputs to vary")
    if wrong := [run for run in runs if run.check_passed is False]:
        return finding("shadow", "; ".join(f"wrong on {on_inputs(run)}: {run.detail}" for run in wrong))
    good = [run for run in runs if run.is_good]
    if len(good) >= MINIMUM_VARIED_RUNS:
        return finding("active", f"{len(good)} of {len(runs)} runs on other inputs succeeded")
    if costly := costly_tools(evidence.tools):
        return finding("proposed", f"cannot be tried on other inputs: {listed(costly)} may not run again")
    failures = [run for run in runs if not run.succeeded]
    failed = "; ".join(f"failed on {on_inputs(run)}: {run.detail}" for run in failures)
    if len(runs) < MINIMUM_VARIED_RUNS or not any(run.known_valid for run in failures):
        missing = [name for name in names if not any(name in run.changed for run in good)] or names
        why = f"no {MINIMUM_VARIED_RUNS} other valid values for {', '.join(missing)}"
        return finding("proposed", f"{why}; made up ones {failed}" if failed else why)
    return finding("context_only", f"works on {len(good)} of {len(runs)} other inputs: {failed}")


def trivial(evidence: Evidence) -> Iterable[Finding]:
    """Paper: FlowEvo (gate 4, `trivial_solution_check`): a body that returns a constant.

    Differs: shown by running too: outputs that no run on other inputs has moved.
    """
    workflow = evidence.skill.workflow
    stands_on = sorted(output_nodes(workflow))
    empty = [] if stands_on else ["its outputs stand on no tool"]
    yield faultless("calls_tools", "trivial", empty, inputs=[*stands_on])
    codes = [node.code for node in workflow.nodes if node.code is not None]
    found = [(code.entry, constant_body(code.source, code.entry)) for code in codes]
    constants = [f"{entry} returns {value} whatever it is given" for entry, value in found if value]
    good = [run for run in evidence.varied if run.is_good]
    constant = bool(input_names(workflow) and good) and not any(run.outputs_changed for run in good)
    same = [f"its outputs were the same in {len(good)} runs on other inputs"] if constant else []
    yield faultless("depends_on_inputs", "trivial", [*constants, *same], inputs=[shown(run) for run in good])
