"""The gate: bad candidates made of sound skills, judged as a save by name would be.

Every candidate is replayed and varied on the live servers through the product's own admission;
none is stored. Must be 0: how many become active.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import get_args

from pydantic import JsonValue

from server.bank import Bank
from server.bank.admission.judging import Lesson, judge_candidate
from server.bench.bad_candidates import Bad, BadKind, Bench, spoil
from server.bench.compile_report import GateCase, GateReport
from server.bench.kept import Kept
from server.compilation.compile import Compiled
from server.progress import Progress, ProgressListener, ignore_progress
from server.verification import Checks
from skills_store.skill import ReplayTest, Skill

__all__ = ["GatePlan", "measure_gate"]


@dataclass(frozen=True, slots=True)
class GatePlan:
    """How many candidates are made, by which dice, and who is told."""

    candidates: int
    seed: int
    listener: ProgressListener = field(default=ignore_progress)


async def measure_gate(skills: Sequence[Skill], bank: Bank, plan: GatePlan, kept: Kept) -> GateReport:
    """Return what the gate makes of bad candidates, the kinds in equal shares."""
    context = bank.context
    snapshot = await context.snapshot()
    sound = [skill for skill in skills if skill.state in ("active", "proposed") and skill.tests]
    bench = Bench(snapshot, context.config.effects)
    drawn = _drawn(sound, bench, plan)
    cases: list[GateCase] = []
    for number, bad in enumerate(drawn, 1):

        async def make(bad: Bad = bad) -> GateCase:
            return await _judged(bad, bank)

        case = await kept.or_made("gate", f"{bad.kind}/{bad.skill.name}/{bad.detail}", GateCase, make)
        plan.listener(Progress("bench", f"gate {number} of {len(drawn)}: {case.kind}: {case.state}"))
        cases.append(case)
    return GateReport(
        seed=plan.seed, cases=tuple(cases), unplaced=plan.candidates - len(cases), sound=len(sound)
    )


def _drawn(sound: Sequence[Skill], bench: Bench, plan: GatePlan) -> list[Bad]:
    """Return candidates in equal shares of the kinds, drawn over all skills."""
    kinds: tuple[BadKind, ...] = get_args(BadKind)
    drawn: list[Bad] = []
    for at, kind in enumerate(kinds):
        share = plan.candidates // len(kinds) + (at < plan.candidates % len(kinds))
        found = [bad for skill in sound for bad in spoil(kind, skill, bench)]
        Random(f"gate:{plan.seed}:{kind}").shuffle(found)
        drawn += found[:share]
    return drawn


async def _judged(bad: Bad, bank: Bank) -> GateCase:
    skill = await _run_anew(bad.skill, bank) if bad.runs_anew else bad.skill
    lesson = Lesson(
        readings=(Compiled(skill),),
        explicit=True,
        examples=(),
        snapshot=await bank.context.snapshot(),
        context=bank.context,
        traces=2,
    )
    verdict = (await judge_candidate(lesson, None, None)).verdict
    return GateCase(
        kind=bad.kind,
        skill=skill.name,
        detail=bad.detail,
        state=verdict.state,
        reason=verdict.reason,
    )


async def _run_anew(skill: Skill, bank: Bank) -> Skill:
    """Return a skill with tests as they come out when it is run now."""
    tests: list[ReplayTest] = []
    for test in skill.tests:
        report = await bank.run(skill.workflow.to_json(), test.inputs, Checks())
        outputs: dict[str, JsonValue] = report.outputs or {}
        tests.append(test.model_copy(update={"outputs": outputs, "volatile": ()}))
    return skill.model_copy(update={"tests": tuple(tests)})
