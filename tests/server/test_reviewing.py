"""Reviewing: what waits is shown with what it changes; a person's own version is tested and theirs."""

from __future__ import annotations

import pytest

from catalog.tools import ToolId
from server.bank.errors import NotSaved
from server.requests import SaveRequest
from skills_store.errors import MalformedWorkflow

pytestmark = pytest.mark.anyio

ADD, NOTE = ToolId("calculator", "add"), ToolId("notes", "save_note")


async def saved(desk, tool=NOTE, name="note", **arguments):
    await desk.bank.call_tool(tool, arguments, recording=name)
    return await desk.bank.save(SaveRequest(name, recording=name, inputs=arguments))


async def test_what_waits_is_listed_with_its_reason_its_diff_and_its_tests(open_desk):
    async with open_desk() as desk:
        await saved(desk, text="milk")
        await saved(desk, ADD, "plus", a=1, b=2)
        (item,) = (await desk.bank.review_queue()).waiting
    assert (item.name, item.version, item.replaces, item.inputs_added) == ("note", 1, None, ("text",))
    assert "notes/save_note" in item.reason
    assert "+ node save_note: notes/save_note" in item.diff
    assert [check.name for check in item.failed if check.gate == "safety"] == ["effects"]
    assert item.tests[0] == "original"


async def test_a_version_that_would_replace_one_in_use_shows_only_what_it_changes(open_desk):
    async with open_desk() as desk:
        await saved(desk, ADD, "plus", a=1, b=2)
        await desk.bank.call_tool(NOTE, {"text": "x"}, recording="other")
        await desk.bank.save(SaveRequest("plus", recording="other", inputs={"text": "x"}))
        (item,) = (await desk.bank.review_queue()).waiting
    assert (item.version, item.replaces) == (2, 1)
    assert (item.inputs_added, item.inputs_removed) == (("text",), ("a", "b"))
    assert "- node add: calculator/add" in item.diff


async def test_a_version_that_a_later_one_has_overtaken_waits_again_once_that_is_turned_down(open_desk):
    async def waiting(desk):
        return [(item.name, item.version) for item in (await desk.bank.review_queue()).waiting]

    async with open_desk() as desk:
        await saved(desk, text="milk")
        skill = await desk.bank.show_skill("note")
        document = skill.workflow.to_json()
        document["nodes"][0]["arguments"] = {"text": "to do: {$inputs.text}"}
        await desk.bank.revise("note", document)
        both = [version.state for version in desk.store.versions("note")]
        overtaken = await waiting(desk)
        await desk.bank.reject("note", "not so", 2)
        again = await waiting(desk)
    assert both == ["proposed", "proposed"]
    assert (overtaken, again) == ([("note", 2)], [("note", 1)])


class TestAPersonsOwnVersion:
    async def test_is_tested_put_in_use_and_theirs(self, open_desk):
        async with open_desk() as desk:
            await saved(desk, ADD, "plus", a=1, b=2)
            skill = await desk.bank.show_skill("plus")
            document = skill.workflow.to_json()
            document["nodes"][0]["tool"]["tool"] = "multiply"
            wrong = await desk.bank.revise("plus", document)
            document["nodes"][0]["tool"]["tool"] = "add"
            document["nodes"][0]["arguments"] = {"a": "$inputs.b", "b": "$inputs.a"}
            right = await desk.bank.revise("plus", document)
            now = await desk.bank.show_skill("plus")
        assert (wrong.skill.version, wrong.skill.state) == (2, "proposed")
        assert "replay of original failed" in wrong.reason
        assert (right.skill.version, right.skill.state) == (3, "active")
        assert (now.version, now.origin) == (3, "user")

    async def test_that_holds_a_secret_is_refused(self, open_desk):
        async with open_desk(secrets=("hunter2-very-secret",)) as desk:
            await saved(desk, text="milk")
            document = (await desk.bank.show_skill("note")).workflow.to_json()
            document["nodes"][0]["arguments"] = {"text": "{$inputs.text} hunter2-very-secret"}
            with pytest.raises(NotSaved, match="holds a secret"):
                await desk.bank.revise("note", document)
            assert len(desk.store.versions("note")) == 1

    async def test_with_faults_or_without_a_change_is_refused(self, open_desk):
        async with open_desk() as desk:
            await saved(desk, ADD, "plus", a=1, b=2)
            document = (await desk.bank.show_skill("plus")).workflow.to_json()
            with pytest.raises(NotSaved, match="this workflow already"):
                await desk.bank.revise("plus", document)
            with pytest.raises(MalformedWorkflow):
                await desk.bank.revise("plus", {"nodes": []})
            document["nodes"][0]["tool"]["tool"] = "subtract"
            with pytest.raises(NotSaved, match="calculator/subtract"):
                await desk.bank.revise("plus", document)
