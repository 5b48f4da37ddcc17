"""What attribution is worth to a search: plans damaged alike are repaired with it and without it.

The plans are references of explored tasks with simulated faults, as the evolution benchmark makes them;
both searches have the same budget, seed, checks and catalog.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pydantic import BaseModel, ConfigDict

from server.bank.bank import Bank
from server.bench.damage import MEASURED
from server.bench.evolution_conditions import Condition, measure_plan
from server.bench.evolution_mix import STRENGTHS
from server.bench.evolution_plans import Place, WeakPlan, simulated_plan
from server.evolution.options import SearchOptions, Switches
from server.exploration.tasks import ExploredTask
from server.provisioning.task_file import BenchTask
from server.requests import Budget

__all__ = ["OFF", "ON", "CreditMeasured", "measure_credit"]

OFF = Condition(
    "attribution off",
    SearchOptions(strategy="ladder", switches=replace(Switches(), attribution=False)),
)
ON = Condition(
    "attribution on",
    SearchOptions(strategy="ladder", switches=replace(Switches(), attribution=True)),
)


class CreditMeasured(BaseModel):
    """Damaged plans repaired with attribution and without. Candidates are those up to the verified one."""

    model_config = ConfigDict(frozen=True)

    plans: int = 0
    solved_without: int = 0
    solved_with: int = 0
    both: int = 0
    """Plans that both repaired; only of these are candidates compared."""
    candidates_without: int = 0
    candidates_with: int = 0
    fewer: int = 0
    """Plans of both that took fewer candidates with attribution."""
    more: int = 0

    def __add__(self, other: CreditMeasured) -> CreditMeasured:
        """Return the sums."""
        ours, theirs = self.model_dump(), other.model_dump()
        return CreditMeasured(**{name: ours[name] + theirs[name] for name in ours})


async def measure_credit(
    tasks: Sequence[ExploredTask], bank: Bank, budget: Budget, seed: int
) -> CreditMeasured:
    """Return what becomes of each task's damaged references, at every strength of the simulator.

    Raises:
        BenchError: only the world stood in the way of a run.
    """
    total = CreditMeasured()
    for number, task in enumerate(tasks):
        for plan in _plans(task, bank, seed + number):
            off = await measure_plan(plan, OFF, bank, budget, seed)
            on = await measure_plan(plan, ON, bank, budget, seed)
            both = off.verified and on.verified
            total += CreditMeasured(
                plans=1,
                solved_without=off.verified,
                solved_with=on.verified,
                both=both,
                candidates_without=off.candidates if both else 0,
                candidates_with=on.candidates if both else 0,
                fewer=both and on.candidates < off.candidates,
                more=both and on.candidates > off.candidates,
            )
    return total


def _plans(task: ExploredTask, bank: Bank, seed: int) -> list[WeakPlan]:
    context = bank.context
    place = Place(_bench_task(task), context.known(), context.effects, fixtures="")
    drawn = [simulated_plan(place, strength, MEASURED, seed) for strength in STRENGTHS]
    return [plan for plan in drawn if plan is not None]


def _bench_task(task: ExploredTask) -> BenchTask:
    return BenchTask(
        id=task.id,
        task=task.task,
        servers=task.servers,
        inputs=task.inputs,
        workflow=task.workflow,
        assertions=task.assertions,
    )
