"""Tools that change under a serving bank: told once, told at once, and kept over a restart."""

from __future__ import annotations

import logging

import anyio
import pytest

from catalog.effects import Effect
from catalog.testing import ScriptedServer, ScriptedTool
from catalog.tools import ToolId
from server.requests import RepairRequest
from server.verification import Checks

pytestmark = pytest.mark.anyio

NUMBER = {"type": "number"}
ADD = ToolId("calculator", "add")


@pytest.fixture
def adding(node, document):
    return document(
        node("s", "calculator/add", {"a": "$inputs.a", "b": "$inputs.b"}),
        outputs={"sum": "$nodes.s.output#/result"},
        inputs={"a": NUMBER, "b": NUMBER},
    )


async def save(desk, adding):
    request = RepairRequest(
        task="Add 2 and 3", inputs={"a": 2, "b": 3}, checks=Checks(("output.sum == `5`",)), save="adds"
    )
    return await desk.bank.repair(adding, request)


def add_tool(**properties):
    pair = {"type": "object", "properties": {"a": NUMBER, "b": NUMBER, **properties}, "required": ["a", "b"]}
    return ScriptedTool("add", lambda n: {"result": n["a"] + n["b"]}, pair)


def told(caplog):
    return [r.getMessage() for r in caplog.records if r.name.startswith("server.bank")]


async def test_a_skill_is_stale_as_soon_as_its_tool_changed_though_nobody_calls_it(open_desk, adding, caplog):
    caplog.set_level(logging.WARNING)
    async with open_desk() as desk:
        await save(desk, adding)
        before = desk.bank.revision()
        await desk.change("calculator", [add_tool(digits={"type": "integer"})])
        assert desk.store.head("adds").state == "stale"
        assert desk.bank.published() == []
        assert desk.bank.revision() > before
        moments = [p.message for p in desk.progress if p.stage == "drift"]
        await desk.change("calculator", [add_tool(digits={"type": "integer"}), add_tool_named("more")])
        (report,) = [s for s in desk.bank.servers() if s.name == "calculator"]
    assert moments == [f"adds@1 is stale: {CHANGED}"]
    assert told(caplog) == [
        "the tools of calculator are not what they were: gone: multiply; changed: add",
        f"skill adds@1 is stale: {CHANGED}",
        "the tools of calculator are not what they were: new: more",
    ]
    assert report.changes == ("gone: multiply; changed: add", "new: more")


CHANGED = "calculator/add changed since the skill was verified"


def add_tool_named(name):
    return ScriptedTool(name, [{"x": 1}])


async def test_a_skill_is_stale_when_its_server_lists_nothing_any_more(open_desk, adding):
    async with open_desk() as desk:
        await save(desk, adding)
        await desk.change("calculator", [])
        assert desk.store.head("adds").reason == "calculator/add is gone"
        assert desk.store.snapshot().of_server("calculator") == ()


async def test_a_change_while_the_bank_was_away_is_noticed_when_it_next_connects(open_desk, adding):
    async with open_desk() as desk:
        await save(desk, adding)
    changed = ScriptedServer([add_tool(digits={"type": "integer"})])
    for changes in (("gone: multiply; changed: add",), ()):  # told once, also over restarts
        async with open_desk({"calculator": changed}) as later:
            await later.bank.find_tools("add", 3)  # which does not wait for a server whose tools are stored
            while later.bank.servers()[0].status == "idle":
                await anyio.sleep(0.01)
            assert later.store.head("adds").state == "stale"
            (report,) = later.bank.servers()
            assert report.changes == changes
            assert report.problems == (
                "changed since their class was set, unknown until set again: add"
                " (`skillbank effects set calculator/add CLASS`)",
            )


async def test_a_changed_tool_has_an_unknown_effect_until_somebody_looks_again(open_desk):
    async with open_desk() as desk:
        await desk.context.snapshot()
        assert desk.context.effects.effect(ADD) is Effect.PURE
        await desk.change("calculator", [add_tool(digits={"type": "integer"})])
        assert desk.context.effects.effect(ADD) is Effect.UNKNOWN
        effects = {e.tool: e.reason for e in (await desk.bank.list_effects()).effects}
    assert effects["add"] == (
        "configured as pure, but its definition changed since: skillbank effects set calculator/add CLASS"
    )
    async with open_desk({"calculator": ScriptedServer([add_tool(digits={"type": "integer"})])}) as later:
        await later.context.snapshot()
        assert later.context.effects.effect(ADD) is Effect.UNKNOWN
        assert await later.bank.recheck_effects("calculator", "a*") == ("add",)
        assert later.context.effects.effect(ADD) is Effect.PURE


async def test_a_tool_that_is_as_it_was_again_has_its_class_again(open_desk):
    async with open_desk() as desk:
        await desk.context.snapshot()
        before = desk.servers["calculator"].tools()
        await desk.change("calculator", [add_tool(digits={"type": "integer"})])
        await desk.change("calculator", before)
        assert desk.context.effects.effect(ADD) is Effect.PURE


async def test_other_words_are_told_and_change_no_class(open_desk):
    async with open_desk(
        {"s": ScriptedServer([add_tool_named("look")])}, effects={"s": {"*": Effect.READ}}
    ) as desk:
        await desk.context.snapshot()
        await desk.change("s", [ScriptedTool("look", [{"x": 1}], description="Looks.")])
        assert desk.context.effects.effect(ToolId("s", "look")) is Effect.READ
        assert desk.bank.servers()[0].changes == ("described otherwise: look",)
