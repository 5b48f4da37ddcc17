"""Exploring servers with state: handles that later calls need, changes, and what then looks otherwise."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from catalog.effects import Effect, Reset
from catalog.testing import Reply, ScriptedServer, ScriptedTool
from server.bank.upstreams.exploration import Exploration
from server.exploration.options import ExplorationOptions
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
