"""Exploring servers with state: handles that later calls need, changes, and what then looks otherwise."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass, field, fields
from typing import Any

import pytest

from catalog.effects import Effect, Reset
from catalog.testing import Reply, ScriptedServer, ScriptedTool
from server.bank.upstreams.exploration import Exploration
from server.bank.upstreams.teaching import scoped_replayer
from server.curation.replaying import Replayer
from server.execution.run import Run
from server.exploration.chains import chain_of
from server.exploration.distilling import distil
from server.exploration.feasibility import Feasibility
from server.exploration.health.calls import check_finding
from server.exploration.observation import Probe
from server.exploration.options import ExplorationOptions
from server.exploration.scope import exploration_scope
from server.exploration.session import open_session
from server.requests import SolveRequest
from server.verification import Checks
from tests.server.conftest import TEXT, schema

pytestmark = pytest.mark.anyio


def _refusal(text: str) -> Reply:
    return Reply.text(text, is_error=True)


def shelves() -> list[ScriptedTool]:
    """A store behind handles: `open_shelf` gives one out, `close_shelf` ends it, all else needs one."""
    names, held = itertools.count(7_301), dict[str, list[str]]()

    def opened(arguments: Any) -> Any:
        handle = f"shelf-{next(names)}"
        held[handle] = []
        return {"shelf_id": handle, "label": arguments["label"]}

    def closed(arguments: Any) -> Any:
        if held.pop(arguments["shelf_id"], None) is None:
            return _refusal("there is no such shelf")
        return {"closed": True}

    def put(arguments: Any) -> Any:
        if arguments["shelf_id"] not in held:
            return _refusal("there is no such shelf")
        held[arguments["shelf_id"]].append(arguments["thing"])
        return {"ok": True}

    def listed(arguments: Any) -> Any:
        if arguments["shelf_id"] not in held:
            return _refusal("there is no such shelf")
        return {"things": [*held[arguments["shelf_id"]]], "size": len(held[arguments["shelf_id"]])}

    return [
        ScriptedTool("open_shelf", opened, schema(label=TEXT), description="Open a shelf."),
        ScriptedTool("close_shelf", closed, schema(shelf_id=TEXT), description="Close a shelf."),
        ScriptedTool(
            "put_thing", put, schema(shelf_id=TEXT, thing=TEXT), description="Put a thing on a shelf."
        ),
        ScriptedTool("list_things", listed, schema(shelf_id=TEXT), description="List the things on a shelf."),
    ]


EFFECTS = {"shelves": {"*": Effect.WRITE, "list_things": Effect.READ}}


def _options(**changed: Any) -> ExplorationOptions:
    return ExplorationOptions(**{"budget_calls": 300, "tasks": 4, "calls_per_second": 10_000, **changed})


def _tools(task: Any) -> list[str]:
    return [node["tool"]["tool"] for node in task.workflow["nodes"]]


async def test_a_task_of_a_server_with_state_makes_the_change_that_it_looks_at(open_desk):
    async with open_desk(reset={"notes": Reset.PROCESS}) as desk:
        report = await desk.bank.explore(Exploration("notes", _options()))
        [task] = [t for t in report.tasks if _tools(t) == ["save_note", "list_notes"]]
        held = task.held_out[-1]
        solved = await desk.bank.solve(held.task, SolveRequest(checks=Checks(assertions=held.assertions)))
        kept = desk.servers["notes"].log.count("save_note")
    assert task.assertions
    assert held.assertions != task.assertions
    assert solved.status == "verified"
    assert kept > 0


async def test_a_task_opens_what_its_calls_need_instead_of_naming_a_handle(open_desk):
    server = ScriptedServer(shelves)
    async with open_desk({"shelves": server}, effects=EFFECTS, reset={"shelves": Reset.PROCESS}) as desk:
        report = await desk.bank.explore(Exploration("shelves", _options()))
    assert ["open_shelf", "put_thing", "list_things"] in [_tools(task) for task in report.tasks]
    assert "shelf-73" not in json.dumps([task.model_dump(mode="json") for task in report.tasks])
    assert report.coverage.never_succeeded == ()


async def test_what_was_closed_is_opened_again(open_desk):
    server = ScriptedServer(shelves)
    async with open_desk({"shelves": server}, effects=EFFECTS, reset={"shelves": Reset.PROCESS}) as desk:
        report = await desk.bank.explore(Exploration("shelves", _options(tasks=0)))
    assert report.coverage.succeeded == 4
    rules = {(finding.rule, finding.tool) for finding in report.health.findings}
    assert not {rule for rule, _ in rules} & {"volatile", "flaky", "always-fails"}


def moody() -> list[ScriptedTool]:
    """Answers every second call only, whatever it is asked."""
    turns = itertools.count()

    def measure(arguments: Any) -> Any:
        if next(turns) % 2:
            return _refusal("the sensor is used by another thread")
        return {"length": len(arguments["text"])}

    return [ScriptedTool("measure", measure, schema(text=TEXT), description="Measure.")]


async def test_an_equal_call_that_fails_is_told_the_author_as_flaky(open_desk):
    effects = {"moody": {"*": Effect.READ}}
    async with open_desk({"moody": ScriptedServer(moody)}, effects=effects) as desk:
        report = await desk.bank.explore(Exploration("moody", _options()))
    [finding, *_] = [f for f in report.health.findings if f.rule == "flaky"]
    assert finding.severity == "error"
    assert "the sensor is used by another thread" in finding.message


@dataclass(frozen=True)
class _Unlucky(Replayer):
    """Gives the first runs of a workflow inputs that its tool refuses: a server that fails by chance."""

    left: list[int] = field(default_factory=list[int])

    async def run_workflow(self, workflow: Any, inputs: Any, recorded: Any = ()) -> Run:
        if self.left:
            self.left.pop()
            inputs = dict.fromkeys(inputs, "refused")
        return await super().run_workflow(workflow, inputs, recorded)


def picky() -> list[ScriptedTool]:
    def weigh(arguments: Any) -> Any:
        if arguments["text"] == "refused":
            return _refusal("the scale is used by another thread")
        return {"weight": len(arguments["text"]) * 3}

    return [ScriptedTool("weigh", weigh, schema(text=TEXT), description="Weigh a text.")]


@pytest.mark.parametrize(("unlucky", "is_kept"), [(1, True), (2, False)])
async def test_a_reference_that_a_tool_fails_once_is_tried_in_another_process(open_desk, unlucky, is_kept):
    effects = {"picky": {"*": Effect.READ}}
    async with open_desk({"picky": ScriptedServer(picky)}, effects=effects) as desk:
        context = desk.context
        snapshot = await context.snapshot(["picky"])
        scope = exploration_scope("picky", snapshot.of_server("picky"), context.effects)
        known = scoped_replayer(scope, context)
        replayer = _Unlucky(**{f.name: getattr(known, f.name) for f in fields(known)}, left=[0] * unlucky)
        async with open_session(context.connections, scope, _options()) as session:
            seen = await session.call(Probe(scope.allowed[0], {"text": "a stone"}, "typical"))
            draft = distil(chain_of(seen, session.observations))
            assert draft is not None
            checking = Feasibility(replayer, session)
            checked = await checking.check(draft, "picky-01")
    assert (checked.task is not None) == is_kept
    told = [check_finding(one) for one in checking.flakes]
    assert [(finding.rule, finding.tool) for finding in told] == ([("flaky", "weigh")] if is_kept else [])
    assert is_kept or "used by another thread" in checked.reason
