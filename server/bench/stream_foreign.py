"""The stream over worlds of others: recorded by a client first, then reused, judged by the world's checker.

No planner without a model plans these tasks, so a task that the bank cannot do is done by its reference,
as a client's recorded session, and saved under its family's name; later ones find what became of it.
Paper: FlowEvo (Table 4): ALFWorld, an interactive family, from an empty bank. Differs: its episodes are
    made by a model; here the references of BFCL, τ²-bench and TextWorld stand in for one.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

from pydantic import JsonValue

from catalog.tools import ToolId
from server.bank import Bank
from server.bank.errors import BankError
from server.bench.errors import BenchError
from server.bench.kept import Kept
from server.bench.stream_foreign_report import Attempt, ForeignLine, ForeignReport, ForeignWorldReport
from server.bench.stream_foreign_tasks import (
    FAMILIES,
    WORLDS,
    ForeignFamily,
    ForeignTask,
    WorldName,
    in_turns,
)
from server.bench.stream_foreign_worlds import ForeignWorld, open_foreign_world
from server.bench.tau_second import base_of, cause_of, inputs_of
from server.progress import Progress, ProgressListener
from server.provisioning.errors import ProvisioningError
from server.reports import RepairReport, Route, RunReport
from server.requests import Budget, SaveRequest, SolveRequest
from server.wiring import open_bank
from skills_store.skill import Skill

__all__ = ["ForeignSize", "measure_foreign", "play_world"]

_BUDGET = Budget(seconds=30, calls=20, candidates=4)


@dataclass(frozen=True, slots=True)
class ForeignSize:
    """How much is played."""

    worlds: tuple[WorldName, ...] = WORLDS
    families: int | None = None
    """The first so many of each world, None: all."""
    each: int = 4
    """Tasks of a family, at most."""


async def measure_foreign(size: ForeignSize, kept: Kept, listener: ProgressListener) -> ForeignReport:
    """Return what a bank made of the streams of all worlds, one after the other.

    Args:
        size: how much is played.
        kept: finished worlds of an earlier run.
        listener: told of each task.
    """
    worlds: list[ForeignWorldReport] = []
    missing: list[str] = []
    for name in size.worlds:

        async def make(name: WorldName = name) -> ForeignWorldReport:
            with TemporaryDirectory(prefix="skillbank-bench-") as folder:
                async with open_foreign_world(name, Path(folder), listener) as world:
                    return await play_world(name, world, FAMILIES[name][: size.families], size.each, listener)

        key = f"{name}, {size.families or 'all'} families, {size.each} each"
        try:
            worlds.append(await kept.or_made("foreign", key, ForeignWorldReport, make))
        except (BenchError, ProvisioningError) as error:
            missing.append(f"{name}: {error}")
    return ForeignReport(worlds=tuple(worlds), missing=tuple(missing))


async def play_world(
    name: str, world: ForeignWorld, families: Sequence[ForeignFamily], each: int, listener: ProgressListener
) -> ForeignWorldReport:
    """Return what a bank that begins empty made of a stream in one world."""
    async with open_bank(world.settings) as bank:
        stream = in_turns(await world.find(families, each, bank))
        player = _Player(world, bank)
        lines: list[ForeignLine] = []
        for number, task in enumerate(stream, 1):
            listener(Progress("bench", f"{name} {number} of {len(stream)}: {task.family.id}, {task.id}"))
            lines.append(await player.play(task))
    return ForeignWorldReport(
        world=name, server=world.server, families=tuple(one.id for one in families), lines=tuple(lines)
    )


@dataclass
class _Player:
    """One stream in one world: the bank, and what was recorded so far by family."""

    world: ForeignWorld
    bank: Bank
    recorded: dict[str, list[ForeignTask]] = field(default_factory=dict[str, list[ForeignTask]])
    seen: dict[str, int] = field(default_factory=dict[str, int])

    async def play(self, task: ForeignTask) -> ForeignLine:
        """Try a task by its words, by its family's skill, and record it where words do not do it."""
        started = time.perf_counter()
        number = self.seen[task.family.id] = self.seen.get(task.family.id, 0) + 1
        direct = await self._by_words(task, "direct")
        seeded = None if direct.right else await self._by_words(task, "seeded")
        skill = await self._skill(task.family)
        called = None if skill is None else await self._called(skill, task)
        is_done = direct.right or (seeded is not None and seeded.right)
        line = ForeignLine(
            family=task.family.id,
            task=task.id,
            number=number,
            direct=direct,
            seeded=seeded,
            called=called,
            recorded=not is_done,
        )
        learned = {} if is_done else await self._recorded(task)
        return line.model_copy(update={**learned, "seconds": time.perf_counter() - started})

    async def _by_words(self, task: ForeignTask, route: Route) -> Attempt:
        await self.world.begin(task, self.bank)
        report = await self.bank.solve(task.words, SolveRequest(route=route, budget=_BUDGET))
        if not _has_run(report):
            return Attempt(ran=False, detail="; ".join(report.route_reasons) or _faults(report))
        return await self._judged(task, report)

    async def _judged(self, task: ForeignTask, report: RepairReport | RunReport) -> Attempt:
        """Ask the world's checker, and tell the bank what it said, as a client that sees the world would."""
        verdict = await self.world.judge(task, cast("JsonValue", report.outputs))
        if report.trace_id is not None:
            await self.bank.report_outcome(report.trace_id, verdict.right, verdict.detail)
        return Attempt(ran=True, right=verdict.right, detail=verdict.detail)

    async def _skill(self, family: ForeignFamily) -> Skill | None:
        heads = [head.name for head in self.bank.skill_heads()]
        return await self.bank.describe_skill(family.id) if family.id in heads else None

    async def _called(self, skill: Skill, task: ForeignTask) -> Attempt:
        """Call a family's skill with the values that this task's reference has at its inputs."""
        sessions = [list(one.calls) for one in self.recorded[task.family.id]]
        made_of = sessions[base_of(skill, sessions)]
        inputs, problem = inputs_of(skill, made_of, list(task.calls))
        inputs = _recorded_inputs(skill, task) or inputs
        if inputs is None:
            return Attempt(ran=False, detail=problem or "")
        await self.world.begin(task, self.bank)
        try:
            report = await self.bank.run_skill(skill.name, inputs, skill.version)
        except BankError as error:
            return Attempt(ran=False, detail=str(error))
        if not report.trace:
            return Attempt(ran=False, detail="; ".join(fault.message for fault in report.faults))
        judged = await self._judged(task, report)
        if judged.right:
            return judged
        cause = cause_of(skill, made_of, list(task.calls), report.trace)
        return judged.model_copy(update={"detail": f"{cause}: {judged.detail}"})

    async def _recorded(self, task: ForeignTask) -> dict[str, object]:
        """Play the reference as a client's session, save it, and return what became of it."""
        await self.world.begin(task, self.bank)
        recording = f"{task.family.id}-{len(self.recorded.get(task.family.id, ())) + 1}"
        for tool, arguments in task.calls:
            await self.bank.call_tool(ToolId(self.world.server, tool), arguments, recording=recording)
        self.recorded.setdefault(task.family.id, []).append(task)
        known = {(one.name, one.version) for one in self.bank.skill_versions(task.family.id)}
        try:
            saved = await self.bank.save(
                SaveRequest(name=task.family.id, recording=recording, task=task.words)
            )
        except BankError as error:
            return {"compiled": False, "detail": str(error)}
        if saved.skill is None:
            return {"compiled": False, "detail": saved.reason}
        skill = await self.bank.describe_skill(saved.skill.name, saved.skill.version)
        is_new = (skill.name, skill.version) not in known
        learned: dict[str, object] = {"compiled": True, "detail": saved.reason}
        learned["state"] = skill.state if is_new else None
        if skill.state == "proposed":
            learned["approved"] = await self._approved(skill)
        return {**learned, "again": await self._called(skill, task)}

    async def _approved(self, skill: Skill) -> bool:
        try:
            await self.bank.approve(skill.name, skill.version)
        except BankError:
            return False  # its admission says why, and the line tells that
        return True


def _recorded_inputs(skill: Skill, task: ForeignTask) -> dict[str, JsonValue] | None:
    """Return the inputs under which a skill is this task's session, None where it was not made of it."""
    for test in skill.tests:
        made = [(call.tool.tool, call.arguments) for call in test.recorded]
        if test.kind != "varied" and made and all(call in task.calls for call in made):
            return dict(test.inputs)
    return None


def _has_run(report: RepairReport) -> bool:
    return report.calls > 0 or bool(report.trace)


def _faults(report: RepairReport) -> str:
    return "; ".join(fault.message for fault in report.faults)
