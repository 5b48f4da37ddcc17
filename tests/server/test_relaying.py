"""The upstream side: tools are found over all servers, calls leave a trace, servers are named."""

from __future__ import annotations

import sys
from dataclasses import replace

import anyio
import pytest

from catalog.config import ServerSpec
from catalog.connections import open_connections
from catalog.effects import Effect
from catalog.result import CallFailure, CallSuccess
from catalog.testing import Reply, ScriptedServer, ScriptedTool
from catalog.tools import ToolId
from server.bank import Bank
from server.bank.errors import BankError, UnknownTrace

pytestmark = pytest.mark.anyio

TRACE = "io.skillbank/trace"


async def test_tools_are_found_over_the_whole_catalog(open_desk):
    async with open_desk() as desk:
        hits = {
            query: (await desk.bank.find_tools(query, 3)).tools[0]
            for query in ("convert a length", "hash of a text", "save a note")
        }
    found = {query: f"{hit.server}/{hit.tool}" for query, hit in hits.items()}
    assert found == {
        "convert a length": "units/convert_length",
        "hash of a text": "hashes/sha256",
        "save a note": "notes/save_note",
    }
    assert hits["save a note"].effect is Effect.WRITE
    assert hits["hash of a text"].output_schema["required"] == ["digest"]


async def test_tools_of_a_server_that_is_away_are_found_as_last_seen(open_desk):
    async with open_desk() as desk:
        await desk.bank.find_tools("note", 3)
    async with open_desk({"notes": ScriptedServer(_refuses)}, configured=("notes",)) as later:
        hits = (await later.bank.find_tools("save a note", 3)).tools
    assert (hits[0].server, hits[0].tool) == ("notes", "save_note")


async def test_tools_of_a_server_that_left_the_configuration_are_not_found(open_desk):
    async with open_desk() as desk:
        await desk.bank.find_tools("note", 3)
    async with open_desk(configured=("units",)) as later:
        assert {hit.server for hit in (await later.bank.find_tools("save a note convert", 9)).tools} <= {
            "units"
        }


async def test_a_changed_list_of_tools_is_found_at_once(open_desk):
    async with open_desk() as desk:
        await desk.bank.find_tools("note", 3)
        await desk.change("notes", [ScriptedTool("burn_papers", [{"x": 1}], description="Burn all papers.")])
        hits = (await desk.bank.find_tools("burn papers", 3)).tools
        stored = desk.store.snapshot()
    assert (hits[0].server, hits[0].tool) == ("notes", "burn_papers")
    assert [tool.id.tool for tool in stored.of_server("notes")] == ["burn_papers"]


class TestRelaying:
    async def test_a_call_is_kept_as_a_trace_that_its_answer_names(self, open_desk):
        async with open_desk() as desk:
            tool = ToolId("calculator", "add")
            outcome = await desk.bank.call_tool(tool, {"a": 1, "b": 2})
            trace = desk.store.trace(outcome.meta[TRACE])
        assert isinstance(outcome, CallSuccess)
        assert outcome.output == {"result": 3}
        (step,) = trace.steps
        assert (trace.status, step.tool, step.arguments, step.output) == (
            "succeeded",
            tool,
            {"a": 1, "b": 2},
            {"result": 3},
        )

    @pytest.mark.parametrize(
        ("tool", "kind"),
        [
            pytest.param("s/fails", "tool_error", id="error"),
            pytest.param("s/nothing", "unknown_tool", id="unknown-tool"),
            pytest.param("other/x", "unknown_tool", id="unknown-server"),
        ],
    )
    async def test_a_call_that_fails_is_kept_too(self, open_desk, tool, kind):
        server = ScriptedServer([ScriptedTool("fails", [Reply.text("Error: no", is_error=True)])])
        async with open_desk({"s": server}) as desk:
            outcome = await desk.bank.call_tool(ToolId(*tool.split("/")), {})
            trace = desk.store.trace(outcome.meta[TRACE])
        assert isinstance(outcome, CallFailure)
        assert (trace.status, [fault.kind for fault in trace.faults]) == ("failed", [kind])

    async def test_a_client_calls_what_costs_without_being_asked(self, open_desk):
        async with open_desk() as desk:
            for _ in range(2):
                await desk.bank.call_tool(ToolId("notes", "save_note"), {"text": "a"})
            assert desk.count("save_note") == 2

    async def test_feedback_stands_with_the_trace(self, open_desk):
        async with open_desk() as desk:
            outcome = await desk.bank.call_tool(ToolId("calculator", "add"), {"a": 1, "b": 2})
            trace_id = outcome.meta[TRACE]
            answer = await desk.bank.report_outcome(trace_id, False, "should have been 4")
            said = desk.store.trace(trace_id).verifications
        assert answer == {"trace": trace_id, "passed": False, "recorded": True}
        assert [(v.by, v.passed, v.detail) for v in said] == [("feedback", False, "should have been 4")]

    async def test_feedback_on_nothing_is_a_typed_error(self, open_desk):
        async with open_desk() as desk:
            with pytest.raises(UnknownTrace, match="'gone' is kept") as refused:
                await desk.bank.report_outcome("gone", True, "")
        assert isinstance(refused.value, BankError)


class TestDoctor:
    async def test_says_of_each_server_how_it_is(self, open_desk):
        servers = {
            "good": ScriptedServer([ScriptedTool("look", [1]), ScriptedTool("touch", [1])]),
            "broken": ScriptedServer(_refuses),
        }
        async with open_desk(servers, effects={"good": {"look": Effect.READ}}) as desk:
            report = await desk.bank.doctor()
        broken, good = report.servers
        assert (broken.name, broken.status, broken.tools) == ("broken", "unreachable", 0)
        assert broken.problems
        assert (good.name, good.status, good.tools, good.classified) == ("good", "ok", 2, 1)
        assert report.config.endswith("config.json")

    async def test_says_what_the_configuration_cannot_mean(self, open_desk):
        good = ScriptedServer([ScriptedTool("look", [1])])
        effects = {"good": {"*": Effect.READ}, "stranger": {"*": Effect.READ}}
        async with open_desk({"good": good}, effects=effects) as desk:
            report = await desk.bank.doctor()
        assert ["stranger" in problem for problem in report.problems] == [True]

    async def test_says_how_to_begin(self, open_desk):
        async with open_desk(configured=()) as desk:
            report = await desk.bank.doctor()
        assert "skillbank add" in report.problems[-1]


async def test_effects_say_where_they_come_from(open_desk):
    tools = [ScriptedTool(name, [1]) for name in ("look", "look_up", "touch")]
    effects = {"s": {"look": Effect.PURE, "look_*": Effect.READ}}
    async with open_desk({"s": ScriptedServer(tools)}, effects=effects) as desk:
        await desk.context.snapshot()
        report = await desk.bank.list_effects()
    assert [(e.tool, e.effect, e.reason) for e in report.effects] == [
        (
            "look",
            Effect.PURE,
            "configured by name; proposed was unknown:"
            " nothing in its name, description or parameters says what it does",
        ),
        (
            "look_up",
            Effect.READ,
            "configured by the pattern 'look_*'; proposed was unknown:"
            " nothing in its name, description or parameters says what it does",
        ),
        (
            "touch",
            Effect.UNKNOWN,
            "not classified (proposed: write, 'touch' changes something):"
            " skillbank effects set s/touch CLASS",
        ),
    ]


async def test_the_tool_index_is_built_once_for_equal_tools(open_desk):
    async with open_desk() as desk:
        await desk.context.snapshot()
        first = desk.context.tool_index()
        assert Bank(replace(desk.context)).context.tool_index() is first
        await desk.change("notes", [ScriptedTool("other", [1])])
        assert desk.context.tool_index() is not first


def _refuses():
    raise RuntimeError("it does not start")


async def test_known_tools_are_found_although_a_new_server_never_gets_ready(open_desk):
    async with open_desk() as desk:
        await desk.bank.find_tools("note", 3)
    async with open_desk() as later:
        stuck = ServerSpec(
            "stuck", command=sys.executable, args=("-c", "import time; time.sleep(3600)"), timeout_seconds=600
        )
        servers = {**later.context.config.servers, "stuck": stuck}
        config = replace(later.context.config, servers=servers)
        async with open_connections(config, only=["stuck"]) as connections:
            context = replace(later.context, config=config, connections=connections)
            with anyio.fail_after(30):
                hits = await Bank(context).find_tools("save a note", 1)
    assert (hits.tools[0].server, hits.tools[0].tool) == ("notes", "save_note")
