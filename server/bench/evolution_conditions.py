"""What is done with a weak plan, by condition: nothing, the ladder, a population, a part switched off.

All conditions get the same budget, checks and catalog; a proposer never sees what an assertion compares
with. What became of a plan is `PlanOutcome`.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from server.bank import Bank
from server.bench.cases import holds
from server.bench.evolution_editor import EditorTape
from server.bench.evolution_plans import WeakPlan
from server.bench.evolution_report import PlanOutcome
from server.bench.evolution_world import part_of
from server.evolution.candidate import Evaluation
from server.evolution.driver import SearchResult, search
from server.evolution.evaluate import Evaluator
from server.evolution.options import SearchOptions, Switches
from server.execution.episode import Episode
from server.requests import Budget
from server.verification import Checks
from skills_store.workflow.model import Workflow

__all__ = ["CONDITIONS", "Condition", "measure_plan"]

_MODEL_SECONDS = 600.0
"""Of a search that asks the model, which on two cores takes half a minute an answer. Calls and candidates
are as without it."""
_MODEL_TOKENS = 8_000
_PROMPT_TOKENS = 1_500
_CROSSOVER = 0.3
_ALONE = SearchOptions(strategy="population", ladder_first=False)


@dataclass(frozen=True, slots=True)
class Condition:
    """One way of going on from a plan."""

    name: str
    options: SearchOptions | None
    """None: the plan is checked and run once, as it is."""
    asks_model: bool = False
    is_ablation: bool = False


def _without(part: str) -> Condition:
    options = replace(_ALONE, switches=replace(Switches(), **{part: False}))
    return Condition(f"population, no {part.replace('_', ' ')}", options, is_ablation=True)


CONDITIONS: tuple[Condition, ...] = (
    Condition("zero-shot", None),
    Condition("retry only", SearchOptions(strategy="retry")),
    Condition("deterministic ladder", SearchOptions(strategy="ladder")),
    Condition("ladder, then population", SearchOptions(strategy="population")),
    Condition("population", _ALONE),
    Condition("greedy", SearchOptions(strategy="greedy", ladder_first=False)),
    _without("memoisation"),
    _without("diversity"),
    _without("meta_guidance"),
    _without("growth_control"),
    _without("evidence"),
    Condition("population, with crossover", replace(_ALONE, crossover=_CROSSOVER), is_ablation=True),
    Condition(
        "ladder, then population with the model",
        SearchOptions(strategy="population", prompt_tokens=_PROMPT_TOKENS),
        asks_model=True,
    ),
)


async def measure_plan(
    plan: WeakPlan,
    condition: Condition,
    bank: Bank,
    budget: Budget,
    seed: int,
    editor: EditorTape | None = None,
) -> PlanOutcome:
    """Return what becomes of a plan under a condition.

    Args:
        plan: where it stands.
        condition: what is done.
        bank: the servers.
        budget: of the search.
        seed: of everything that is drawn.
        editor: the model that edits, where the condition asks one.

    Raises:
        BenchError: only the world stood in the way of a run.
    """
    base = PlanOutcome(
        task=plan.place.task.id,
        part=part_of(plan.place.task.id),
        source=plan.source,
        condition=condition.name,
        simulated=plan.simulated,
        kinds=plan.kinds,
        readable=plan.workflow is not None,
        plan_tokens=plan.tokens,
        plan_seconds=plan.seconds,
    )
    if plan.workflow is None:
        return base
    evaluator = _evaluator(plan, plan.workflow, bank, condition.options)
    started = time.perf_counter()
    allowed = _allowed(condition, budget)
    options = replace(condition.options or SearchOptions(strategy="retry"), seed=seed)
    try:
        result = await search(plan.workflow, evaluator, allowed, options=options, editor=editor)
    except TimeoutError:
        return base.model_copy(update={"seconds": time.perf_counter() - started, "stopped": "seconds"})
    except Exception as error:  # a defect of ours is a result of the benchmark, shown in its table
        return base.model_copy(
            update={"seconds": time.perf_counter() - started, "crashed": repr(error)[:600]}
        )
    seconds = time.perf_counter() - started + (editor.replayed_seconds if editor is not None else 0.0)
    outcome = base.model_copy(update={"seconds": seconds, **_told(result)})
    if not outcome.verified:
        return outcome
    right = await _right_on_held_out(plan, result.best.candidate.workflow, bank)
    return outcome.model_copy(update={"right": right})


def _allowed(condition: Condition, budget: Budget) -> Budget:
    if condition.options is None:
        return replace(budget, candidates=1)
    return replace(budget, seconds=_MODEL_SECONDS, tokens=_MODEL_TOKENS) if condition.asks_model else budget


def _evaluator(plan: WeakPlan, workflow: Workflow, bank: Bank, options: SearchOptions | None) -> Evaluator:
    context, place = bank.context, plan.place
    memoise = options is None or options.switches.memoisation
    episode = Episode(
        context.connections, place.effects, place.catalog, context.consent, context.principal, memoise=memoise
    )
    episode.set_plan(workflow, context.skill_workflow)
    return Evaluator(place.world(), place.checks, episode, context.options(place.task.task))


def _told(result: SearchResult) -> dict[str, object]:
    best = result.best.evaluation
    return {
        "static_ok": best.status != "static_faults",
        "executed_ok": _executed(best),
        "verified": best.status == "verified",
        "calls": result.calls,
        "candidates": len(result.records),
        "search_tokens": result.tokens,
        "stopped": result.stopped,
        "by": result.best.made.by or result.best.made.mode,
        "faults": tuple(f"{fault.kind}: {fault.message}"[:240] for fault in best.faults),
        "base": result.base.candidate.workflow.to_json(),
        "best": result.best.candidate.workflow.to_json(),
    }


def _executed(evaluation: Evaluation) -> bool:
    """Return whether every declared output came out of a run without a fault of its own."""
    if evaluation.status not in ("executed", "verified") or evaluation.result is None:
        return False
    return all(value is not None for value in evaluation.result.values())


async def _right_on_held_out(plan: WeakPlan, workflow: Workflow, bank: Bank) -> bool | None:
    held_out = plan.place.task.held_out
    if not held_out:
        return None
    document = workflow.to_json()
    return all([await holds(bank, document, held.inputs, Checks(held.assertions)) for held in held_out])
