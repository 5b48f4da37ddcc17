"""Drawing cases: only what fails is counted, and a case is judged on inputs nobody saw."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from pydantic import JsonValue

from catalog.tools import Snapshot, Tool, ToolId
from server.bench.cases import CasePlan, draw_cases, given_cases, holds
from server.bench.errors import BenchError
from server.bench.repair_bench import RepairOptions, run_repair_bench
from server.provisioning.task_file import BenchTask
from server.reports import RepairReport, RunReport
from server.requests import RepairRequest
from server.settings import Settings
from server.verification import Checks
from skills_store.workflow.faults import ServerUnavailableFault

pytestmark = pytest.mark.anyio

_ADD = ToolId("sums", "add")
_NUMBERS: dict[str, JsonValue] = {
    "type": "object",
    "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
    "required": ["a", "b"],
}
_SNAPSHOT = Snapshot.of(Tool(_ADD, _NUMBERS))
_RIGHT = ["output.n == `7`"]


def _workflow(a: JsonValue = "$inputs.n") -> dict[str, JsonValue]:
    first = {"id": "one", "tool": {"server": "sums", "tool": "add"}, "arguments": {"a": a, "b": 2}}
    second = {
        "id": "two",
        "tool": {"server": "sums", "tool": "add"},
        "arguments": {"a": "$nodes.one.output#/result", "b": 1},
    }
    return {
        "name": "sum",
        "inputs": {"type": "object", "properties": {"n": {"type": "number"}}},
        "nodes": [first, second],
        "outputs": {"n": "$nodes.two.output#/result"},
    }


def _task(**changes: object) -> BenchTask:
    given = {
        "id": "sum",
        "task": "Add 2 to 4, then 1.",
        "servers": ["sums"],
        "inputs": {"n": 4},
        "workflow": _workflow(),
        "assertions": _RIGHT,
        "held_out": [{"inputs": {"n": 5}, "assertions": ["output.n == `8`"]}],
    }
    return BenchTask.model_validate({**given, **changes})


def _outcome(passed: bool) -> RunReport:
    return RunReport(status="verified" if passed else "failed", outputs=None)


@dataclass
class ScriptedBank:
    """A bank whose verdict on a document is a function of it, and whose repair is one document."""

    passes: Callable[[object, Checks], bool]
    repaired: dict[str, JsonValue] = field(default_factory=_workflow)
    error: Exception | None = None
    asked: list[RepairRequest] = field(default_factory=list[RepairRequest])

    async def run(self, document: object, inputs: Mapping[str, JsonValue], checks: Checks) -> RunReport:
        del inputs
        return _outcome(self.passes(document, checks))

    async def repair(self, document: object, request: RepairRequest) -> RepairReport:
        del document
        self.asked.append(request)
        if self.error is not None:
            raise self.error
        passed = self.passes(self.repaired, request.checks)
        status = "verified" if passed else "failed"
        return RepairReport(status=status, outputs=None, workflow=self.repaired, calls=3, candidates=2)


def _is_reference(document: object, checks: Checks) -> bool:
    del checks
    return document == _workflow()


async def test_cases_are_broken_as_planned_and_the_same_for_the_same_seed():
    plan = CasePlan(singles=9, doubles=2, triples=0, seed=5)
    bank = ScriptedBank(_is_reference)

    drawn = await draw_cases([_task()], _SNAPSHOT, bank, plan)
    again = await draw_cases([_task()], _SNAPSHOT, bank, plan)

    assert drawn == again
    assert len(drawn.cases) + drawn.unplaced == 11
    assert {len(case.kinds) for case in drawn.cases} == {1, 2}
    assert all(case.broken != _workflow() for case in drawn.cases)


async def test_what_passes_all_the_same_is_not_a_case():
    drawn = await draw_cases(
        [_task()], _SNAPSHOT, ScriptedBank(lambda *_: True), CasePlan(singles=4, doubles=0, triples=0)
    )

    assert drawn.cases == []
    assert drawn.unplaced == 4
    assert drawn.still_passing > 0


async def test_of_two_faults_each_must_break_the_workflow_alone():
    def passes(document: object, checks: Checks) -> bool:
        del checks
        return "needless" in str(document) or "_again" in str(document) or _extra(document) == 1

    def _extra(document: object) -> int:
        return json.dumps(document).count('"id"') - 2

    plan = CasePlan(singles=0, doubles=6, triples=0, seed=1)
    drawn = await draw_cases([_task()], _SNAPSHOT, ScriptedBank(passes), plan)

    assert all("extra_step" not in case.kinds for case in drawn.cases)


async def test_a_brought_case_that_passes_as_it_is_is_counted_apart():
    tasks = [_task(broken=_workflow()), _task(id="other", broken=_workflow(a=None), kinds=["missing"])]

    given = await given_cases(tasks, ScriptedBank(_is_reference))

    assert [(case.task.id, case.kinds) for case in given.cases] == [("other", ("missing",))]
    assert given.still_passing == 1


async def test_a_run_that_only_the_world_stopped_says_nothing():
    class Gone(ScriptedBank):
        async def run(self, document: object, inputs: Mapping[str, JsonValue], checks: Checks) -> RunReport:
            del document, inputs, checks
            fault = ServerUnavailableFault(message="sums is gone", tool=_ADD)
            return RunReport(status="failed", outputs=None, faults=(fault,))

    with pytest.raises(BenchError, match="sums is gone"):
        await holds(Gone(_is_reference), _workflow(), {}, Checks(tuple(_RIGHT)))


def _options(tmp_path: Path, **changes: object) -> RepairOptions:
    config = tmp_path / "config.json"
    config.write_text('{"mcpServers": {}}', encoding="utf-8")
    task = _task(broken=_workflow(a=None), kinds=["missing_argument"])
    return RepairOptions(tasks=(task,), config=config, memory_cases=0, **changes)


def _opening(bank: ScriptedBank):
    @asynccontextmanager
    async def open_bank(settings: Settings, *, memoise: bool) -> AsyncGenerator[ScriptedBank]:
        del settings, memoise
        yield bank

    return open_bank


async def test_a_repair_that_also_holds_on_held_out_inputs_is_right(tmp_path):
    bank = ScriptedBank(_is_reference)

    report = await run_repair_bench(_options(tmp_path), _opening(bank))

    assert (report.all_cases.verified, report.all_cases.right, report.all_cases.false_repairs) == (1, 1, 0)
    assert report.all_cases.calls.mean == 3
    assert [tally.name for tally in report.by_kind] == ["missing_argument"]


async def test_a_repair_sees_words_inputs_and_checks_and_nothing_held_out(tmp_path):
    bank = ScriptedBank(_is_reference)

    await run_repair_bench(_options(tmp_path), _opening(bank))

    [request] = bank.asked
    assert request.task == "Add 2 to 4, then 1."
    assert request.inputs == {"n": 4}
    assert request.checks.assertions == tuple(_RIGHT)
    assert "8" not in str(request.checks)


async def test_a_repair_that_fails_on_held_out_inputs_is_false(tmp_path):
    def passes(document: object, checks: Checks) -> bool:
        return document == _workflow() and checks.assertions == tuple(_RIGHT)

    report = await run_repair_bench(_options(tmp_path), _opening(ScriptedBank(passes)))

    assert (report.all_cases.verified, report.all_cases.right, report.all_cases.false_repairs) == (1, 0, 1)


async def test_a_crash_of_the_repair_is_a_failed_case_with_its_message(tmp_path):
    crash = ExceptionGroup("search", [ExceptionGroup("inner", [KeyError("node")])])

    report = await run_repair_bench(_options(tmp_path), _opening(ScriptedBank(_is_reference, error=crash)))

    assert report.all_cases.verified == 0
    assert report.cases[0].crashed == "KeyError: 'node'"


async def test_memory_is_measured_by_repairing_again_without_it(tmp_path):
    bank, opened = ScriptedBank(_is_reference), list[bool]()

    @asynccontextmanager
    async def open_bank(settings: Settings, *, memoise: bool) -> AsyncGenerator[ScriptedBank]:
        del settings
        opened.append(memoise)
        yield bank

    options = _options(tmp_path)
    report = await run_repair_bench(
        RepairOptions(tasks=options.tasks, config=options.config, memory_cases=1), open_bank
    )

    assert opened == [True, False]
    assert report.memory is not None
    assert (report.memory.cases, report.memory.calls_with, report.memory.calls_without) == (1, 3, 3)
