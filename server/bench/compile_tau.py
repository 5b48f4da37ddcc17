"""τ²-bench reference runs, retail and airline, as a client's recorded sessions.

Each reference run goes through its server call by call and is saved as a skill; the skill is run on
the same task and on a second one of the same calls, from a reset state each time. Right means that
the last answer and the database afterwards are those of the reference run. The simulated user is left
out: whoever calls the skill gives what stands at its inputs' places in the second task's reference run.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

from pydantic import JsonValue

from catalog.result import CallSuccess
from catalog.tools import ToolId
from server.bank import Bank
from server.bank.errors import BankError
from server.bench.compile_report import TauCase, TauReport
from server.bench.kept import Kept
from server.bench.tau_saved import of_session
from server.bench.tau_second import TauCause, base_of, cause_of, inputs_of
from server.progress import Progress, ProgressListener
from server.provisioning.fetched import cache_folder, fetched_entries
from server.provisioning.tau_database import database_digest
from server.provisioning.tau_tasks import DOMAINS, ReferenceRun, reference_runs
from server.requests import SaveRequest
from server.settings import Settings, read_settings
from skills_store.skill import Skill

__all__ = ["measure_tau"]

_READS = ("get_*", "find_*", "list_*", "search_*", "calculate")


class OpenBank(Protocol):
    """Opens a bank (`server.wiring.open_bank`)."""

    def __call__(self, settings: Settings, *, memoise: bool) -> AbstractAsyncContextManager[Bank]: ...


@dataclass(frozen=True, slots=True)
class _Ran:
    """A reference run as it went: the calls that succeeded, the last answer, and the database afterwards."""

    run: ReferenceRun
    calls: tuple[tuple[str, dict[str, JsonValue]], ...]
    answer: JsonValue
    database: str
    """A digest."""

    @property
    def shape(self) -> tuple[str, ...]:
        return tuple(tool for tool, _ in self.calls)


@dataclass(frozen=True, slots=True)
class _World:
    """One domain's server behind a bank, and the folder of its state."""

    domain: str
    bank: Bank
    state: Path

    async def reset(self) -> None:
        await self.bank.call_tool(ToolId(self.domain, "reset_state"), {})

    def database(self) -> str:
        """Return a digest of the database as the server has written it down."""
        return database_digest(self.state, self.domain)


async def measure_tau(
    pairs: int | None, open_bank: OpenBank, kept: Kept, listener: ProgressListener
) -> TauReport:
    """Return what the reference runs of both domains become, saved one by one.

    Args:
        pairs: how many tasks that have a second one are saved per domain; None: every task.
        open_bank: opens the bank.
        kept: finished tasks of an earlier run.
        listener: told of each task.

    Raises:
        BenchError: the servers are not fetched.
    """
    cases: list[TauCase] = []
    skipped = 0
    for domain in DOMAINS:
        with TemporaryDirectory(prefix="skillbank-bench-") as made:
            settings = _settings(domain, Path(made))
            async with open_bank(settings, memoise=True) as bank:
                world = _World(domain, bank, Path(made) / "state" / domain)
                found, left = await _measured(world, pairs, kept, listener)
        cases += found
        skipped += left
    return TauReport(sessions=len(cases), skipped=skipped, cases=tuple(cases))


def _settings(domain: str, folder: Path) -> Settings:
    entries, _ = fetched_entries([domain], cache_folder(), folder / "state")
    effects = {"*": "write", **dict.fromkeys(_READS, "read")}
    own = {"effects": {domain: effects}, "allow": {domain: ["*"]}}
    config = folder / "config.json"
    config.write_text(json.dumps({"mcpServers": entries, "skillbank": own}), encoding="utf-8")
    return read_settings(config=config, store=folder / "store.db")


async def _measured(
    world: _World, pairs: int | None, kept: Kept, listener: ProgressListener
) -> tuple[list[TauCase], int]:
    ran = [await _played(world, run) for run in _subset(reference_runs(world.domain), pairs)]
    usable = [one for one in ran if len(one.calls) > 1]
    seconds = {one.run.id: _second(one, usable) for one in usable}
    if pairs is not None:
        usable = [one for one in usable if seconds[one.run.id] is not None][:pairs]
    cases: list[TauCase] = []
    for number, one in enumerate(usable, 1):

        async def make(one: _Ran = one) -> TauCase:
            return await _case(world, one, seconds[one.run.id], usable)

        case = await kept.or_made("tau", f"{world.domain}/{one.run.id}", TauCase, make)
        right = {True: "right", False: "not right", None: "no second task"}[case.right]
        listener(
            Progress(
                "bench", f"{world.domain} {number} of {len(usable)}: {case.state or 'not kept'}, {right}"
            )
        )
        cases.append(case)
    return cases, sum(len(one.calls) < 2 for one in ran)


def _subset(runs: Sequence[ReferenceRun], pairs: int | None) -> list[ReferenceRun]:
    """Return all runs, or for a few pairs those of the commonest planned calls."""
    if pairs is None:
        return list(runs)
    shapes = [tuple(name for name, _ in run.calls) for run in runs]
    twice = [
        run for run, shape in zip(runs, shapes, strict=True) if len(shape) > 1 and shapes.count(shape) > 1
    ]
    return twice[: 3 * pairs]


async def _played(world: _World, run: ReferenceRun) -> _Ran:
    """Make the calls of a reference run from a reset state, kept as a conversation."""
    await world.reset()
    done: list[tuple[str, dict[str, JsonValue]]] = []
    answer: JsonValue = None
    for name, arguments in run.calls:
        tool = ToolId(world.domain, name)
        outcome = await world.bank.call_tool(tool, arguments, recording=_name(world, run))
        if isinstance(outcome, CallSuccess):
            done.append((name, arguments))
            answer = _content(outcome.output)
    return _Ran(run, tuple(done), answer, world.database())


def _content(output: JsonValue) -> JsonValue:
    """Return what a tool says, without the numbers of its calls."""
    return output.get("parsed_content") if isinstance(output, dict) else output


def _name(world: _World, run: ReferenceRun) -> str:
    return f"{world.domain}_{run.id}"


def _second(one: _Ran, all_ran: Sequence[_Ran]) -> _Ran | None:
    """Return the next task of the same calls, None where there is none."""
    at = next(number for number, other in enumerate(all_ran) if other is one)
    later = (*all_ran[at + 1 :], *all_ran[:at])
    return next((other for other in later if other.shape == one.shape), None)


async def _case(world: _World, one: _Ran, second: _Ran | None, all_ran: Sequence[_Ran]) -> TauCase:
    name = _name(world, one.run)
    base = {"domain": world.domain, "task": one.run.id, "calls": len(one.calls)}
    held_out = second.run.id if second else None
    request = SaveRequest(name=name, recording=name, task=one.run.task)
    try:
        saved = await world.bank.save(request)
        problem = saved.reason
        skill = saved.skill and await world.bank.describe_skill(saved.skill.name, saved.skill.version)
    except BankError as error:
        skill, problem = None, str(error)
    if skill is None:
        return TauCase.model_validate(
            {**base, "held_out": held_out, "compiled": False, "state": None, "detail": problem}
            | {"reproduced": None, "right": None}
        )
    alike = [ran for ran in all_ran if ran.shape == one.shape]
    own = await of_session(skill, request, one.calls, world.bank)
    skill, made_of = own or skill, one if own else alike[base_of(skill, [ran.calls for ran in alike])]
    reproduced, missed = await _leaves(world, skill, made_of, one)
    right, cause = await _leaves(world, skill, made_of, second) if second else (None, None)
    return TauCase.model_validate(
        {**base, "held_out": held_out, "compiled": True, "state": skill.state, "detail": problem}
        | {"reproduced": reproduced, "missed": missed, "right": right, "cause": cause}
    )


async def _leaves(world: _World, skill: Skill, made_of: _Ran, meant: _Ran) -> tuple[bool, TauCause | None]:
    """Return whether a skill, from a reset state, says and leaves what a reference run did, or why not."""
    inputs, problem = inputs_of(skill, made_of.calls, meant.calls)
    if inputs is None:
        return False, problem
    await world.reset()
    try:
        report = await world.bank.run_skill(skill.name, inputs, skill.version)
    except BankError:
        return False, "it cannot be run"
    said = (report.outputs or {}).get("parsed_content")
    last = said[-1] if isinstance(said, list) and not isinstance(meant.answer, list) and said else said
    if meant.answer in (said, last) and world.database() == meant.database:
        return True, None
    return False, cause_of(skill, made_of.calls, meant.calls, report.trace)
