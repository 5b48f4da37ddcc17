"""The cases of the repair benchmark: drawn by seed, and counted only when they really fail.

What is done to a workflow is `server.bench.damage`; repairing the cases `server.bench.repair_bench`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Protocol

from pydantic import JsonValue

from catalog.tools import Snapshot
from server.bench.damage import Damaged, DamageKind, damage, draw_kinds, share_out
from server.bench.errors import BenchError
from server.provisioning.task_file import BenchTask
from server.reports import RepairReport, RunReport
from server.requests import RepairRequest
from server.verification import Checks

__all__ = ["Case", "CasePlan", "Drawn", "Repairer", "draw_cases", "given_cases", "holds"]

_TRIES = 3
"""Seeds tried on one task before the next one is taken."""
_RACY = "dropped"
"""The way of damage whose failure depends on timing: it must fail every time it is tried."""
_RACY_RUNS = 3


class Repairer(Protocol):
    """What the benchmark asks of a bank (`server.bank.Bank`)."""

    async def run(self, document: object, inputs: Mapping[str, JsonValue], checks: Checks) -> RunReport:
        """Check and execute a workflow document."""
        ...

    async def repair(self, document: object, request: RepairRequest) -> RepairReport:
        """Execute a workflow document and repair it until it passes its checks."""
        ...


@dataclass(frozen=True, slots=True)
class CasePlan:
    """How many workflows are broken, by how many faults each has."""

    singles: int = 60
    doubles: int = 20
    triples: int = 20
    seed: int = 20261130

    def slots(self) -> Iterator[tuple[DamageKind, ...]]:
        """Yield the kinds of every case: single faults in the measured mix, several drawn by it."""
        for kind in share_out(self.singles) if self.singles else ():
            yield (kind,)
        dice = Random(f"slots:{self.seed}")
        for count, size in ((self.doubles, 2), (self.triples, 3)):
            for _ in range(count):
                yield draw_kinds(size, dice)


@dataclass(frozen=True, slots=True)
class Case:
    """One broken workflow, with what is known of how it was broken."""

    task: BenchTask
    broken: dict[str, JsonValue]
    kinds: tuple[str, ...] = ()
    """Empty when whoever brought the case did not say."""
    details: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    seed: int | None = None
    """None: it was brought, not drawn."""


@dataclass(slots=True)
class Drawn:
    """The cases of a run, and what was not counted among them."""

    cases: list[Case] = field(default_factory=list[Case])
    still_passing: int = 0
    """Damaged workflows that passed all the same, or would with one of their faults; drawn again."""
    unplaced: int = 0
    """Planned cases for which no task had a place."""


async def holds(bank: Repairer, document: object, inputs: Mapping[str, JsonValue], checks: Checks) -> bool:
    """Return whether a workflow, run afresh, passes all its checks.

    Raises:
        BenchError: only the world stood in the way, so that nothing was learned.
    """
    report = await bank.run(document, inputs, checks)
    if report.faults and all(fault.evidence == "world" for fault in report.faults):
        raise BenchError(f"a run says nothing: {report.faults[0].message}")
    return report.status == "verified"


async def given_cases(tasks: Sequence[BenchTask], bank: Repairer) -> Drawn:
    """Return the cases that were brought broken; those that pass as they are, are counted apart."""
    drawn = Drawn()
    for task in tasks:
        if task.broken is None:
            continue
        if await holds(bank, task.broken, task.inputs, Checks(task.assertions)):
            drawn.still_passing += 1
        else:
            drawn.cases.append(Case(task, task.broken, task.kinds))
    return drawn


async def draw_cases(tasks: Sequence[BenchTask], snapshot: Snapshot, bank: Repairer, plan: CasePlan) -> Drawn:
    """Return broken workflows as planned, spread evenly over the tasks that have a reference.

    Each fails when it is run, and so does the reference with any one of its faults alone.
    """

    async def fails(task: BenchTask, found: Damaged) -> bool:
        checks = Checks(task.assertions)
        documents = [found.workflow, *(found.alone if len(found.kinds) > 1 else ())]
        for document in documents * (_RACY_RUNS if _RACY in found.variants else 1):
            if await holds(bank, document, task.inputs, checks):
                return False
        return True

    drawn, used = Drawn(), Counter[str]()
    breakable = [task for task in tasks if task.workflow is not None and task.broken is None]
    for number, kinds in enumerate(plan.slots()):
        dice = Random(f"tasks:{plan.seed}:{number}")
        order = sorted(breakable, key=lambda task: (used[task.id], dice.random()))
        candidates = _candidates(order, snapshot, kinds, plan.seed + number)
        case = await _first_failing(candidates, fails, drawn)
        if case is None:
            drawn.unplaced += 1
        else:
            used[case.task.id] += 1
            drawn.cases.append(case)
    return drawn


def _candidates(
    tasks: Sequence[BenchTask], snapshot: Snapshot, kinds: tuple[DamageKind, ...], seed: int
) -> Iterator[tuple[BenchTask, Damaged]]:
    for task in tasks:
        for attempt in range(_TRIES):
            found = damage(task, snapshot, kinds, seed * _TRIES + attempt)
            if found is not None:
                yield task, found


async def _first_failing(
    candidates: Iterator[tuple[BenchTask, Damaged]],
    fails: Callable[[BenchTask, Damaged], Awaitable[bool]],
    drawn: Drawn,
) -> Case | None:
    for task, found in candidates:
        if await fails(task, found):
            return Case(task, found.workflow, found.kinds, found.details, found.lost, found.seed)
        drawn.still_passing += 1
    return None
