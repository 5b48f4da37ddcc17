"""Measuring a candidate: the parts of its fitness that a run shows, and how far from done it is."""

from __future__ import annotations

from server.evolution.candidate import Fitness
from server.execution.run import Run
from server.verification import Verdict
from skills_store.trace import Step
from skills_store.workflow.faults import Cycle, Fault
from skills_store.workflow.graph import needed
from skills_store.workflow.model import Workflow

__all__ = ["fitness_of", "rule_score", "unmet_of"]


def _succeeded(steps: tuple[Step, ...]) -> set[str]:
    failed = {step.node for step in steps if step.outcome in ("failed", "not_reached")}
    return {step.node for step in steps if step.outcome in ("succeeded", "skipped")} - failed


def fitness_of(
    workflow: Workflow, faults: tuple[Fault, ...], run: Run, verdict: Verdict, *, least_needed: int
) -> Fitness:
    """Return what a run measured; whether it is verified and keeps inputs is the caller's to say.

    Args:
        workflow: that ran.
        faults: static ones and those of the run.
        run: what came of it.
        verdict: on it.
        least_needed: nodes that the outputs of the base need, below which no share is counted.
    """
    wanted = needed(workflow)
    done = _succeeded(run.trace.steps)
    passed = [verification.passed for verification in verdict.verifications]
    produced = [value for value in (run.trace.outputs or {}).values() if value is not None]
    expected = max(len(wanted), least_needed)
    is_fine = verdict.status in ("verified", "succeeded") and not faults
    return Fitness(
        outputs_produced=len(produced) / len(workflow.outputs) if workflow.outputs else 0.0,
        executed=len(wanted & done) / expected if expected else 0.0,
        checks_passed=sum(passed) / len(passed) if passed else float(is_fine),
        rule_score=rule_score(workflow, list(faults), run.trace.steps),
        fewer_calls=-sum(1 for step in run.trace.steps if step.outcome in ("succeeded", "failed")),
        fewer_nodes=-len(workflow.nodes),
    )


def rule_score(workflow: Workflow, faults: list[Fault], steps: tuple[Step, ...]) -> float:
    """Return the mean of five shares, each in [0, 1]; it needs no model.

    They are: nodes with a valid tool, nodes whose arguments comply with the schema, calls made that
    succeeded, nodes whose dependencies are there, planned nodes that executed.

    Paper: MCP-Bench (rule-based metrics; facts §2.3) and EvoFlux (the scorer without a model; facts
    §1.7). Differs: per node, not per call; a workflow with static faults scores too.
    """
    count = len(workflow.nodes) or 1
    unknown = {fault.node for fault in faults if fault.kind == "unknown_tool"}
    wrong = {
        f.node for f in faults if f.kind in ("missing_argument", "unexpected_argument", "invalid_argument")
    }
    lost = {fault.node for fault in faults if fault.kind in ("dangling_reference", "cycle", "malformed")}
    lost |= {name for fault in faults if isinstance(fault, Cycle) for name in fault.nodes}
    ids = {node.id for node in workflow.nodes}
    done = _succeeded(steps) & ids
    tried = {step.node for step in steps if step.outcome in ("succeeded", "failed")} & ids
    shares = (
        (count - len(unknown & ids)) / count,
        (count - len(wrong & ids)) / count,
        len(done & tried) / len(tried) if tried else 0.0,
        (count - len(lost & ids)) / count,
        len(done) / count,
    )
    return sum(shares) / len(shares)


def unmet_of(workflow: Workflow, faults: tuple[Fault, ...], run: Run) -> float:
    """Return how far from done a run is: nodes not run well, missing outputs, faults, the check."""
    done = _succeeded(run.trace.steps)
    undone = [node.id for node in workflow.nodes if node.id not in done]
    missing = len(workflow.outputs) - len([v for v in (run.trace.outputs or {}).values() if v is not None])
    return len(undone) + missing + 1 + 0.5 * len(faults)
