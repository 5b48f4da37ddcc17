"""The gates between a verified run and a trusted skill: from evidence to a verdict, purely.

Every gate looks at every candidate, so that a verdict lists all that is wrong and not the first
thing. Gathering evidence belongs to `server.compilation`, moving states to `lifecycle`.

Paper: FlowEvo (gate): fresh replay, perturbation replay, safety scan, trivial-solution check;
    what fails one is kept as shadow with its reasons.
Differs: duplicates and the interface are gates too; nothing passes vacuously; a candidate that
    is merely short of evidence waits as `proposed`, one that is useful but not trusted to run is
    `context_only`; `shadow` is left for what is shown to be wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from catalog.canonical import JsonValue
from catalog.similarity import words
from skills_store.code.lint import constant_body
from skills_store.evidence import Evidence, UsedTool, VariedRun
from skills_store.skill import AdmissionCheck, AdmissionVerdict, Skill, SkillState
from skills_store.workflow.graph import needed, output_nodes
from skills_store.workflow.model import Workflow
from skills_store.workflow.references import Found
from skills_store.workflow.scan import node_references, scan

__all__ = [
    "INPUTS_REACH",
    "MINIMUM_TRACES",
    "MINIMUM_VARIED_RUNS",
    "ONE_READING",
    "is_refuted",
    "judge_admission",
]

MINIMUM_VARIED_RUNS = 2
MINIMUM_TRACES = 2
INPUTS_REACH = "inputs_reach_outputs"
"""Name of the check that every input was varied and has a say in the outputs."""
ONE_READING = "one_reading"
"""Name of the check that no other reading of the run holds as well."""

Gate = Literal["duplicate", "interface", "function", "safety", "trivial"]

_AMOUNTS = frozenset({"result", "item", "row", "hit", "entry", "depth", "token", "count", "size"})
_MANNERS = frozenset(
    {
        *("limit", "timeout", "page", "verbose", "verbosity"),
        *("debug", "pretty", "indent", "format", "precision", "decimal"),
    }
)
"""Words in the name of an input that says how an answer is given, not what about."""

_FROM_WORST: tuple[SkillState, ...] = ("shadow", "context_only", "proposed")


@dataclass(frozen=True, slots=True)
class _Finding:
    """A check and the best state it leaves open; `active` when it passed."""

    name: str
    gate: Gate
    leaves: SkillState
    detail: str
    inputs: JsonValue = None
    seconds: float = 0.0

    def to_check(self) -> AdmissionCheck:
        return AdmissionCheck(
            name=self.name,
            gate=self.gate,
            passed=self.leaves == "active",
            detail=self.detail,
            leaves=None if self.leaves == "active" else self.leaves,
            inputs=self.inputs,
            seconds=self.seconds,
        )


def judge_admission(evidence: Evidence) -> AdmissionVerdict:
    """Return the state a candidate earned, the reason, and every check with its inputs.

    The worst finding decides: `shadow` when something is shown to be wrong, `context_only` when
    it holds only in part or on a judge's word, `proposed` when evidence or a person is awaited.
    A skill a person wrote is never set aside by the system: it stays `proposed` instead.
    """
    findings = (
        *_duplicate(evidence),
        *_interface(evidence),
        *_function(evidence),
        *_safety(evidence),
        *_trivial(evidence),
    )
    state, reason = _decided(findings) or _awaited(evidence)
    if evidence.equals is not None:
        reason = f"{reason}; it does what {evidence.equals} does"
    if evidence.skill.origin == "user" and state != "active":
        state = "proposed"
    return AdmissionVerdict(state=state, reason=reason, checks=tuple(f.to_check() for f in findings))


def is_refuted(verdict: AdmissionVerdict) -> bool:
    """Return whether runs showed a candidate to be wrong, rather than short of evidence."""
    return any(
        check.gate in ("function", "trivial")
        and check.leaves in ("shadow", "context_only")
        and check.name != "no_frozen_literals"
        for check in verdict.checks
    )


def _decided(findings: Sequence[_Finding]) -> tuple[SkillState, str] | None:
    for state in _FROM_WORST:
        details = [finding.detail for finding in findings if finding.leaves == state]
        if details:
            return state, "; ".join(details)
    return None


def _awaited(evidence: Evidence) -> tuple[SkillState, str]:
    """Return the state of a candidate that passed every gate (`CONTRACTS`, Skill states).

    Paper: FlowEvo (admission): whatever passes the gate is active.
    Differs: it publishes itself only in mode `auto`, and only after two distinct verified runs or
        an explicit save; otherwise a person decides.
    """
    if evidence.learning != "auto":
        mode = f"all gates passed; learning mode is {evidence.learning}"
        return "proposed", f"{mode}: a person approves with {_approval(evidence.skill)}"
    if evidence.explicit_save:
        return "active", "all gates passed; saved explicitly"
    count = evidence.distinct_verified_traces
    if count >= MINIMUM_TRACES:
        return "active", f"all gates passed; {count} distinct verified runs"
    return "proposed", (
        f"all gates passed; {count} of {MINIMUM_TRACES} distinct verified runs:"
        f" another one, an explicit save or a person's {_approval(evidence.skill)} is awaited"
    )


def _approval(skill: Skill) -> str:
    """Return the command of a person who approves; a later version need not be the one in use."""
    version = f" --version {skill.version}" if skill.version > 1 else ""
    return f"`skillbank skills approve {skill.name}{version}`"


def _duplicate(evidence: Evidence) -> Iterable[_Finding]:
    """Paper: FlowEvo (dedup key): entry point and hash of the normalised body.

    Differs: the content hash of the workflow, which leaves names and prose out; a skill that only
        behaves the same is another proof of the kept one, or kept where a person asks for it.
    """
    twin = evidence.duplicate_of
    content_hash = evidence.skill.content_hash
    if twin is None:
        yield _Finding("new", "duplicate", "active", "no skill has this workflow", content_hash)
    else:
        yield _Finding("new", "duplicate", "shadow", f"the skill {twin} has this workflow", content_hash)
    equals = evidence.equals
    said = "no other skill is known to do the same" if equals is None else f"it does what {equals} does"
    yield _Finding("behaviour", "duplicate", "active", said, equals)


def _interface(evidence: Evidence) -> Iterable[_Finding]:
    found = evidence.interface
    faults = [fault for fault in found.faults if fault.kind != "over_limit"]
    yield _faultless("portable_schema", "interface", list(found.schema_lint))
    yield _faultless("static_check", "interface", [f"{f.pointer or '/'}: {f.message}" for f in faults])
    yield _faultless("pinned", "interface", [f"{tool} has no pinned contract" for tool in found.unpinned])


def _function(evidence: Evidence) -> Iterable[_Finding]:
    yield _verified(evidence)
    yield _replayed(evidence)
    names = _input_names(evidence.skill.workflow)
    yield _varied(evidence, names)
    yield _reached(evidence, names)
    frozen = [f"the task's {literal} is a constant in the workflow" for literal in evidence.frozen_literals]
    yield _faultless("no_frozen_literals", "function", frozen, leaves="context_only")
    guessed = [f"nobody said that {name!r} may vary: run it with another value" for name in evidence.unsaid]
    yield _faultless("inputs_said", "function", guessed, leaves="proposed")
    undecided = [evidence.undecided] if evidence.undecided else []
    yield _faultless(ONE_READING, "function", undecided, leaves="proposed")


def _verified(evidence: Evidence) -> _Finding:
    """Paper: FlowEvo (compile): only traces that the verifier passed.

    Differs: a judge's or a later opinion alone is enough for guidance only; a person who saves a
        run explicitly vouches for it.
    """
    said = evidence.verifications
    inputs: JsonValue = [{"by": v.by, "passed": v.passed, "detail": v.detail} for v in said]

    def finding(leaves: SkillState, detail: str) -> _Finding:
        return _Finding("verified", "function", leaves, detail, inputs)

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


def _replayed(evidence: Evidence) -> _Finding:
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

    def finding(leaves: SkillState, detail: str) -> _Finding:
        return _Finding("replay", "function", leaves, detail, inputs, seconds)

    ran = [replay for replay in replays if replay.possible]
    if wrong := [r for r in ran if not r.passed]:
        return finding("shadow", "; ".join(f"replay of {r.test} failed: {r.detail}" for r in wrong))
    if costly := _costly(evidence.tools):
        return finding("proposed", f"cannot be replayed: {_listed(costly)} may not run again")
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


def _varied(evidence: Evidence, names: Sequence[str]) -> _Finding:
    """Paper: FlowEvo (gate 2, `same_family_perturbation_replay`): metamorphic variants by pattern.

    Differs: variants come from the input schema and from what was seen; that there are none that
        are known to be valid makes the skill wait and names the inputs; that fewer than two work
        makes it guidance only.
    """
    runs = evidence.varied
    inputs: JsonValue = [_shown(run) for run in runs]

    def finding(leaves: SkillState, detail: str) -> _Finding:
        return _Finding("varied_runs", "function", leaves, detail, inputs)

    if not names:
        return finding("active", "it has no inputs to vary")
    if wrong := [run for run in runs if run.check_passed is False]:
        return finding("shadow", "; ".join(f"wrong on {_on(run)}: {run.detail}" for run in wrong))
    good = [run for run in runs if run.is_good]
    if len(good) >= MINIMUM_VARIED_RUNS:
        return finding("active", f"{len(good)} of {len(runs)} runs on other inputs succeeded")
    if costly := _costly(evidence.tools):
        return finding("proposed", f"cannot be tried on other inputs: {_listed(costly)} may not run again")
    failures = [run for run in runs if not run.succeeded]
    failed = "; ".join(f"failed on {_on(run)}: {run.detail}" for run in failures)
    if len(runs) < MINIMUM_VARIED_RUNS or not any(run.known_valid for run in failures):
        missing = [name for name in names if not any(name in run.changed for run in good)] or names
        why = f"no {MINIMUM_VARIED_RUNS} other valid values for {', '.join(missing)}"
        return finding("proposed", f"{why}; made up ones {failed}" if failed else why)
    return finding("context_only", f"works on {len(good)} of {len(runs)} other inputs: {failed}")


def _reached(evidence: Evidence, names: Sequence[str]) -> _Finding:
    """Judge whether each input has a say in the outputs.

    A run that changed one input alone tells of that input; one that changed several tells of an
    input only where no run changed it alone.
    """
    good = [run for run in evidence.varied if run.is_good]
    unread = sorted(set(names) - _read_inputs(evidence.skill.workflow))
    still = [name for name in names if name not in unread and _moves_something(name, good) is False]
    excused = {name: why for name in still if (why := _excuse(name, evidence.skill, good))}
    idle = [name for name in still if name not in excused]
    untried = [name for name in names if name not in unread and _moves_something(name, good) is None]
    inputs: JsonValue = {
        "inputs": list(names),
        "unread": [*unread],
        "idle": [*idle],
        "excused": [*excused],
        "untried": [*untried],
    }
    if unread or idle:
        problems = [f"nothing reads the input {name}" for name in unread]
        problems += [f"the input {name} moves no output" for name in idle]
        return _Finding(INPUTS_REACH, "function", "shadow", "; ".join(problems), inputs)
    if untried:
        detail = f"no successful run on another value of {', '.join(untried)}"
        return _Finding(INPUTS_REACH, "function", "proposed", detail, inputs)
    detail = "every input moves an output" if names else "it has no inputs"
    if excused:
        detail += f", apart from {'; '.join(f'{name}: {why}' for name, why in excused.items())}"
    return _Finding(INPUTS_REACH, "function", "active", detail, inputs)


def _excuse(name: str, skill: Skill, runs: Sequence[VariedRun]) -> str:
    """Return why an input need not move an output that was tried and did not, empty when nothing says so."""
    said = frozenset(words(name))
    if said & _MANNERS or ("max" in said and said & _AMOUNTS):
        return "it says how much is given, how, or how long it may take"
    properties = skill.signature.input_schema.get("properties")
    schema = properties.get(name) if isinstance(properties, dict) else None
    options = schema.get("enum") if isinstance(schema, dict) else None
    values = [test.inputs.get(name) for test in skill.tests] + [run.inputs.get(name) for run in runs]
    if isinstance(options, list) and all(option in values for option in options):
        return f"all {len(options)} values of its enum were tried and agree"
    return ""


def _moves_something(name: str, runs: Sequence[VariedRun]) -> bool | None:
    alone = [run for run in runs if run.changed == (name,)]
    told = alone or [run for run in runs if name in run.changed]
    return any(run.outputs_changed for run in told) if told else None


def _safety(evidence: Evidence) -> Iterable[_Finding]:
    """Paper: FlowEvo (gate 3, `static_safety_scan`): banned imports and calls.

    Differs: a workflow is data and calls nothing but tools, so safety is what those tools do, that
        it ends, and that it stays within bounds.
    """
    costly = _costly(evidence.tools)
    lasting = f"{_listed(costly)} leaves lasting effects"
    yield _Finding(
        "effects",
        "safety",
        "proposed" if costly else "active",
        f"{lasting}: a person approves with {_approval(evidence.skill)}" if costly else "no lasting effects",
        [{"tool": str(t.tool), "effect": t.effect.value, "reset": t.reset.value} for t in evidence.tools],
    )
    flows = [*evidence.interface.flows]
    yield _faultless("data_flow", "safety", flows, leaves="proposed")
    itself = ["it would call itself"] if evidence.interface.calls_itself else []
    yield _faultless("no_self_call", "safety", itself)
    over = [fault.message for fault in evidence.interface.faults if fault.kind == "over_limit"]
    yield _faultless("within_limits", "safety", over)


def _trivial(evidence: Evidence) -> Iterable[_Finding]:
    """Paper: FlowEvo (gate 4, `trivial_solution_check`): a body that returns a constant.

    Differs: shown by running too: outputs that no run on other inputs has moved.
    """
    workflow = evidence.skill.workflow
    stands_on = sorted(output_nodes(workflow))
    empty = [] if stands_on else ["its outputs stand on no tool"]
    yield _faultless("calls_tools", "trivial", empty, inputs=[*stands_on])
    codes = [node.code for node in workflow.nodes if node.code is not None]
    found = [(code.entry, constant_body(code.source, code.entry)) for code in codes]
    constants = [f"{entry} returns {value} whatever it is given" for entry, value in found if value]
    good = [run for run in evidence.varied if run.is_good]
    constant = bool(_input_names(workflow) and good) and not any(run.outputs_changed for run in good)
    same = [f"its outputs were the same in {len(good)} runs on other inputs"] if constant else []
    yield _faultless(
        "depends_on_inputs", "trivial", [*constants, *same], inputs=[_shown(run) for run in good]
    )


def _faultless(
    name: str,
    gate: Gate,
    problems: list[str],
    *,
    leaves: SkillState = "shadow",
    inputs: JsonValue = None,
) -> _Finding:
    shown: JsonValue = [*problems] if inputs is None else inputs
    return _Finding(
        name, gate, leaves if problems else "active", "; ".join(problems) or "nothing found", shown
    )


def _costly(tools: Iterable[UsedTool]) -> list[UsedTool]:
    return [tool for tool in tools if not tool.may_repeat]


def _listed(tools: Iterable[UsedTool]) -> str:
    return ", ".join(f"{tool.tool} ({tool.effect.value})" for tool in tools)


def _shown(run: VariedRun) -> JsonValue:
    return {
        "inputs": dict(run.inputs),
        "changed": [*run.changed],
        "succeeded": run.succeeded,
        "outputs_changed": run.outputs_changed,
        "check_passed": run.check_passed,
    }


def _on(run: VariedRun) -> str:
    return ", ".join(f"{name} = {run.inputs.get(name)!r}" for name in run.changed) or "equal inputs"


def _input_names(workflow: Workflow) -> list[str]:
    properties = workflow.inputs.get("properties")
    return sorted(properties) if isinstance(properties, dict) else []


def _read_inputs(workflow: Workflow) -> set[str]:
    """Return the inputs read by the outputs or by a node they stand on."""
    used = needed(workflow)
    found = [*scan(workflow.outputs)]
    found += [found for node in workflow.nodes if node.id in used for found in node_references(node)]
    return {f.reference.name for f in found if isinstance(f, Found) and f.reference.root == "inputs"}
