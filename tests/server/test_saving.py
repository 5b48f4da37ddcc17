"""Saving what was done: a conversation's calls, or a run, becomes a skill that works on other values."""

from __future__ import annotations

import pytest

from catalog.effects import Effect
from catalog.testing import ScriptedServer, ScriptedTool
from catalog.tools import ToolId
from server.bank.errors import NotSaved, UnknownTrace
from server.requests import SaveRequest
from server.verification import Checks

pytestmark = pytest.mark.anyio

CONVERT, ADD, SAVE_NOTE = (
    ToolId("units", "convert_length"),
    ToolId("calculator", "add"),
    ToolId("notes", "save_note"),
)


async def talk(desk, *calls, recording="talk"):
    return [await desk.bank.call_tool(tool, arguments, recording=recording) for tool, arguments in calls]


def convert(value, start="miles", end="meters"):
    return CONVERT, {"value": value, "from_unit": start, "to_unit": end}


class TestAConversation:
    async def test_becomes_a_skill_whose_calls_feed_each_other(self, open_desk):
        async with open_desk() as desk:
            await talk(desk, convert(3), (ADD, {"a": 4828.032, "b": 1500}))
            saved = await desk.bank.save(
                SaveRequest("far", recording="talk", task="How many meters are 3 miles and 1500 meters?")
            )
            ran = await desk.bank.run_skill(
                "far", {"value": 2, "b": 100, "from_unit": "miles", "to_unit": "meters"}
            )
        assert (saved.skill.state, saved.calls) == ("active", 2)
        assert [*saved.skill.inputs] == ["value", "from_unit", "to_unit", "b"]
        assert ran.outputs == {"result": pytest.approx(3318.688)}

    async def test_takes_named_values_as_inputs(self, open_desk):
        async with open_desk() as desk:
            await talk(desk, (ADD, {"a": 4, "b": 5}))
            saved = await desk.bank.save(
                SaveRequest("plus", recording="talk", inputs={"first": 4, "second": 5})
            )
            ran = await desk.bank.run_skill("plus", {"first": 10, "second": 20})
        assert saved.skill.inputs == ("first", "second")
        assert ran.outputs == {"result": 30}

    async def test_leaves_out_what_failed_and_what_nothing_needs(self, open_desk):
        async with open_desk() as desk:
            await talk(desk, convert(1), (ADD, {"a": "x", "b": 1}), (ADD, {"a": 4, "b": 5}))
            saved = await desk.bank.save(SaveRequest("plus", recording="talk", inputs={"a": 4, "b": 5}))
            skill = await desk.bank.show_skill("plus")
        assert [str(node.tool) for node in skill.workflow.nodes] == ["calculator/add"]
        assert saved.skill.state == "active"

    async def test_with_a_write_waits_for_a_person_and_does_not_write_again(self, open_desk):
        async with open_desk() as desk:
            await talk(desk, (SAVE_NOTE, {"text": "milk"}))
            saved = await desk.bank.save(SaveRequest("note", recording="talk", inputs={"text": "milk"}))
            listed = await desk.bank.call_tool(ToolId("notes", "list_notes"), {})
        assert saved.skill.state == "proposed"
        assert listed.structured == {"notes": ["milk"]}

    async def test_can_be_saved_in_part(self, open_desk):
        async with open_desk() as desk:
            await talk(desk, (ADD, {"a": 1, "b": 2}), (ADD, {"a": 4, "b": 5}))
            saved = await desk.bank.save(
                SaveRequest("plus", recording="talk", calls=(1,), inputs={"a": 1, "b": 2})
            )
            with pytest.raises(NotSaved, match="calls 1 to 2, not 3"):
                await desk.bank.save(SaveRequest("plus", recording="talk", calls=(3,)))
        assert saved.calls == 1

    async def test_is_the_last_thing_done_where_nothing_is_named(self, open_desk):
        async with open_desk() as desk:
            await talk(desk, (ADD, {"a": 1, "b": 2}), recording="first")
            await talk(desk, (ADD, {"a": 7, "b": 8}), recording="second")
            await desk.bank.save(SaveRequest("plus", inputs={"a": 7, "b": 8}))
            skill = await desk.bank.show_skill("plus")
        assert skill.tests[0].inputs == {"a": 7, "b": 8}


class TestARun:
    async def test_is_saved_as_it_was_planned(self, open_desk):
        document = {
            "name": "far",
            "inputs": {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]},
            "nodes": [
                {
                    "id": "sum",
                    "tool": {"server": "calculator", "tool": "add"},
                    "arguments": {"a": "$inputs.x", "b": 10},
                }
            ],
            "outputs": {"sum": "$nodes.sum.output#/result"},
        }
        async with open_desk() as desk:
            ran = await desk.bank.run(document, {"x": 5}, Checks())
            saved = await desk.bank.save(SaveRequest("plus_ten", trace=ran.trace_id))
            again = await desk.bank.run_skill("plus_ten", {"x": 7})
        assert saved.skill.inputs == ("x",)
        assert again.outputs == {"sum": 17}

    async def test_that_failed_is_not_saved(self, open_desk):
        async with open_desk() as desk:
            (outcome,) = await talk(desk, (ADD, {"a": "x", "b": 1}))
            with pytest.raises(NotSaved, match="none of its calls succeeded"):
                await desk.bank.save(SaveRequest("plus", trace=outcome.meta["io.skillbank/trace"]))


class TestWhatIsNotThere:
    async def test_is_named(self, open_desk):
        async with open_desk() as desk:
            with pytest.raises(NotSaved, match="nothing was run or called yet"):
                await desk.bank.save(SaveRequest("plus"))
            await talk(desk, (ADD, {"a": 1, "b": 2}))
            for request in (SaveRequest("p", recording="other"), SaveRequest("p", trace="other")):
                with pytest.raises(UnknownTrace, match="other"):
                    await desk.bank.save(request)
            with pytest.raises(NotSaved, match="letter"):
                await desk.bank.save(SaveRequest("17"))


class TestRecordings:
    async def test_are_listed_shown_and_forgotten(self, open_desk):
        async with open_desk() as desk:
            await talk(desk, (ADD, {"a": 1, "b": 2}), recording="first")
            await talk(desk, (ADD, {"a": "x", "b": 2}), (ADD, {"a": 3, "b": 4}), recording="second")
            await desk.bank.call_tool(ADD, {"a": 5, "b": 6})
            listed = await desk.bank.recordings()
            shown = await desk.bank.show_recording("second")
            dropped = await desk.bank.forget_recording("second")
            left = await desk.bank.recordings()
            with pytest.raises(UnknownTrace):
                await desk.bank.forget_recording("second")
        assert [(kept.name, kept.calls) for kept in listed.recordings] == [("second", 2), ("first", 1)]
        assert [(s.number, s.tool, s.outcome) for s in shown.steps] == [
            (1, "calculator/add", "failed"),
            (2, "calculator/add", "succeeded"),
        ]
        assert shown.steps[0].detail
        assert dropped == 2
        assert [kept.name for kept in left.recordings] == ["first"]


class TestASecondConversation:
    async def test_of_the_same_calls_widens_the_skill_that_has_its_name(self, open_desk):
        async with open_desk() as desk:
            await talk(desk, convert(3), recording="first")
            await talk(desk, convert(7, "feet"), recording="second")
            constant = await desk.bank.save(SaveRequest("far", recording="first"))
            saved = await desk.bank.save(SaveRequest("far", recording="second"))
            ran = await desk.bank.run_skill("far", {"value": 1, "from_unit": "kilometers"})
            old = await desk.bank.run_skill("far", {})
        assert (constant.skill.inputs, saved.skill.version) == ((), 2)
        assert (saved.skill.state, saved.skill.inputs) == ("active", ("value", "from_unit"))
        assert ran.outputs == {"value": 1000, "unit": "meters"}
        assert old.outputs == {"value": 3 * 1609.344, "unit": "meters"}

    async def test_of_other_calls_is_a_version_of_its_own(self, open_desk):
        async with open_desk() as desk:
            await talk(desk, convert(3), recording="first")
            await talk(desk, (ADD, {"a": 1, "b": 2}), recording="second")
            await desk.bank.save(SaveRequest("far", recording="first"))
            saved = await desk.bank.save(SaveRequest("far", recording="second", inputs={"a": 1, "b": 2}))
        assert (saved.skill.version, saved.skill.inputs) == (2, ("a", "b"))


async def test_a_value_of_the_task_that_only_a_dropped_call_was_given_keeps_a_skill_from_being_active(
    open_desk,
):
    async with open_desk() as desk:
        await talk(desk, (ADD, {"a": 4321, "b": 1234}), (ADD, {"a": 5600, "b": 7}))
        request = SaveRequest("plus", recording="talk", task="Add 4321 and 1234, round to hundreds, add 7")
        saved = await desk.bank.save(request)
        assert saved.skill is not None
        assert saved.skill.state == "context_only"
        assert "the task's 4321 is a constant in the workflow" in saved.reason


async def test_data_flow_that_a_second_run_corrects_is_kept_though_no_input_is_new(open_desk):
    people = {"v1": "Author: Ada <ada@example.org>", "v2": "Author: Grace <grace@example.org>"}
    tools = [
        ScriptedTool("show", lambda n: {"text": people.get(n["tag"], "Author: Al <al@example.org>")}),
        ScriptedTool("sign", lambda n: {"signed": f"by {n['who']}"}),
    ]
    effects = {"notes": {"*": Effect.PURE}}
    async with open_desk({"notes": ScriptedServer(lambda: tools)}, effects=effects) as desk:
        for tag, who in (("v1", "ada@example.org"), ("v2", "grace@example.org")):
            calls = [(ToolId("notes", "show"), {"tag": tag}), (ToolId("notes", "sign"), {"who": who})]
            await talk(desk, *calls, recording=tag)
            request = SaveRequest("signed", recording=tag, task=f"Sign for the author of '{tag}'")
            saved = await desk.bank.save(request)
        assert saved.skill is not None
        report = await desk.bank.run_skill("signed", {"tag": "v9"}, saved.skill.version)
        assert report.outputs == {"signed": "by al@example.org"}
