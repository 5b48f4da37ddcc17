"""Several readings of one run: none is trusted until evidence decides between them."""

from __future__ import annotations

import pytest

from catalog.effects import Effect
from catalog.testing import ScriptedServer, ScriptedTool
from catalog.tools import ToolId
from server.requests import SaveRequest

pytestmark = pytest.mark.anyio

LOOK_UP, GREET, SEND = ToolId("people", "look_up"), ToolId("people", "greet"), ToolId("people", "send")
HOMES = {"Ada": "London", "Alan": "Wilmslow", "Grace": "New York", "Kurt": "Princeton"}


def people():
    text = {"type": "object", "properties": {"who": {"type": "string"}}, "required": ["who"]}
    place = {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]}
    post = {
        "type": "object",
        "properties": {"place": {"type": "string"}, "postcode": {"type": "string"}},
        "required": ["place", "postcode"],
    }
    return ScriptedServer(
        lambda: [
            ScriptedTool(
                "look_up",
                lambda n: {"home": HOMES.get(n["who"], "Nowhere"), "postcode": f"{n['who']}-0815"},
                input_schema=text,
            ),
            ScriptedTool("send", lambda n: {"sent": f"{n['postcode']} {n['place']}"}, input_schema=post),
            ScriptedTool("greet", lambda n: {"said": f"hello from {n['place']}"}, input_schema=place),
        ]
    )


def opened(open_desk):
    return open_desk({"people": people()}, effects={"people": {"*": Effect.PURE}})


async def told(desk, who, place, task, *, name="greeting"):
    recording = f"{who}-{place}-{len(task)}"
    await desk.bank.call_tool(LOOK_UP, {"who": who}, recording=recording)
    await desk.bank.call_tool(GREET, {"place": place}, recording=recording)
    examples = tuple({"who": one} for one in HOMES if one != who)
    return await desk.bank.save(SaveRequest(name, recording=recording, task=task, examples=examples))


def reads(skill):
    return [node.arguments for node in skill.workflow.nodes]


async def test_a_value_that_the_task_and_an_answer_both_give_waits_with_the_reason(open_desk):
    async with opened(open_desk) as desk:
        saved = await told(desk, "Ada", "London", "Look up 'Ada' and greet from 'London'")
        assert saved.skill is not None
        skill = await desk.bank.describe_skill("greeting", saved.skill.version)
    assert skill.state == "proposed"
    assert "the task says 'London', which an earlier answer gave as well" in skill.reason
    assert [check.name for check in skill.verdict.checks if not check.passed] == ["one_reading"]


async def test_the_reading_that_makes_every_call_of_the_run_is_the_one_that_waits(open_desk):
    async with opened(open_desk) as desk:
        await told(desk, "Ada", "London", "Look up 'Ada' and greet from 'London'")
        skill = await desk.bank.describe_skill("greeting", 1)
    assert reads(skill) == [{"who": "$inputs.who"}, {"place": "$nodes.look_up.output#/home"}]


async def test_a_second_run_with_other_values_makes_the_data_flow_trusted(open_desk):
    async with opened(open_desk) as desk:
        await told(desk, "Ada", "London", "Look up 'Ada' and greet from 'London'")
        saved = await told(desk, "Alan", "Wilmslow", "Look up 'Alan' and greet from 'Wilmslow'")
        ran = await desk.bank.run_skill("greeting", {"who": "Grace"})
    assert saved.skill is not None
    assert saved.skill.state == "active"
    assert ran.outputs == {"said": "hello from New York"}


async def test_a_second_run_that_the_data_flow_does_not_give_makes_it_an_input(open_desk):
    async with opened(open_desk) as desk:
        await told(desk, "Ada", "London", "Look up 'Ada' and greet from 'London'")
        saved = await told(desk, "Alan", "Bletchley", "Look up 'Alan' and greet from 'Bletchley'")
        assert saved.skill is not None
        skill = await desk.bank.describe_skill("greeting", saved.skill.version)
    assert reads(skill)[-1]["place"].startswith("$inputs.")


async def test_the_same_run_again_decides_nothing(open_desk):
    async with opened(open_desk) as desk:
        await told(desk, "Ada", "London", "Look up 'Ada' and greet from 'London'")
        saved = await told(desk, "Ada", "London", "Greet from 'London' after looking up 'Ada'")
    assert saved.skill is not None
    assert saved.skill.state == "proposed"
    assert "another run with other values decides" in saved.reason


async def test_a_value_that_the_task_does_not_say_has_one_reading(open_desk):
    async with opened(open_desk) as desk:
        saved = await told(desk, "Ada", "London", "Look up 'Ada' and greet from the home")
    assert saved.skill is not None
    assert saved.skill.state == "active"


async def test_an_input_that_two_answers_gave_becomes_data_flow_in_the_next_version(open_desk):
    async with opened(open_desk) as desk:
        kept = []
        for who, place in (("Ada", "London"), ("Alan", "Wilmslow")):
            calls = [(LOOK_UP, {"who": who}), (SEND, {"place": place, "postcode": f"{who}-0815"})]
            for tool, arguments in calls:
                await desk.bank.call_tool(tool, arguments, recording=who)
            task = f"Send something to '{who}' in '{place}'"
            saved = await desk.bank.save(SaveRequest("sending", recording=who, task=task))
            kept.append(await desk.bank.describe_skill("sending", saved.skill.version))
        ran = await desk.bank.run_skill("sending", {"who": "Grace"}, kept[1].version)
    first, second = kept
    assert (first.state, first.version, [*first.tests[0].inputs]) == ("proposed", 1, ["who", "place"])
    assert (second.version, [*second.tests[0].inputs]) == (2, ["who"])
    assert {"original", "held_out"} <= {test.kind for test in second.tests}
    assert ran.outputs == {"sent": "Grace-0815 New York"}


async def test_a_value_that_only_calls_left_out_were_given_keeps_a_wider_skill_from_being_active(open_desk):
    zones = {"Lagos": "4.5h ahead", "Lima": "-5.0h behind", "Dubai": "2.0h ahead"}
    tools = [
        ScriptedTool("apart", lambda n: {"text": f"they are {zones[n['zone']]}"}),
        ScriptedTool("minutes", lambda n: {"minutes": n["hours"] * 60}),
    ]
    effects = {"clocks": {"*": Effect.PURE}}
    async with open_desk({"clocks": ScriptedServer(lambda: tools)}, effects=effects) as desk:
        for zone, hours in (("Lagos", 4), ("Lima", -5)):
            await desk.bank.call_tool(ToolId("clocks", "apart"), {"zone": zone}, recording=zone)
            await desk.bank.call_tool(ToolId("clocks", "minutes"), {"hours": hours}, recording=zone)
            request = SaveRequest("apart", recording=zone, task=f"How many minutes is '{zone}' apart?")
            saved = await desk.bank.save(request)
    assert saved.skill is not None
    assert saved.skill.state != "active"
    assert "'Lima'" in saved.reason
