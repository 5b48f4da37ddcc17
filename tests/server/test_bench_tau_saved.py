"""Which inputs a recorded session gives the skill that it became, or only proved again."""

from __future__ import annotations

import pytest

from catalog.tools import ToolId
from server.bench.tau_saved import of_session
from server.bench.tau_second import inputs_of
from server.requests import SaveRequest

pytestmark = pytest.mark.anyio

HASH, ADD = ToolId("hashes", "sha256"), ToolId("calculator", "add")


async def session(desk, name, text, tool=HASH):
    """Record one call, save it under a name, and return the skill with the request and the calls."""
    arguments = {"text": text} if tool == HASH else {"a": 1, "b": 2}
    await desk.bank.call_tool(tool, arguments, recording=name)
    request = SaveRequest(name=name, recording=name, task=f"Compute the sha256 hash of the text '{text}'")
    saved = await desk.bank.save(request)
    skill = await desk.bank.describe_skill(saved.skill.name, saved.skill.version)
    return skill, request, ((tool.tool, arguments),)


async def test_a_session_that_proved_another_ones_skill_has_its_own_values(open_desk):
    async with open_desk() as desk:
        await session(desk, "first", "hello")
        skill, request, calls = await session(desk, "second", "other words")
        own = await of_session(skill, request, calls, desk.bank)
    assert skill.name == "first"
    assert [test.inputs for test in own.tests] == [{"text": "other words"}]
    assert inputs_of(own, calls, calls) == ({"text": "other words"}, None)


async def test_a_session_that_became_a_skill_has_the_values_of_its_test(open_desk):
    async with open_desk() as desk:
        skill, request, calls = await session(desk, "first", "hello")
        own = await of_session(skill, request, calls, desk.bank)
    assert own.tests[0].inputs == {"text": "hello"}


async def test_a_session_of_something_else_is_none_of_a_skills(open_desk):
    async with open_desk() as desk:
        skill, _, _ = await session(desk, "first", "hello")
        await desk.bank.call_tool(ADD, {"a": 1, "b": 2}, recording="sums")
        request = SaveRequest(name="sums", recording="sums", task="Add 1 and 2")
        assert await of_session(skill, request, (("add", {"a": 1, "b": 2}),), desk.bank) is None
