"""Replaying: fresh processes, nothing remembered, nothing that costs, recorded answers instead."""

from __future__ import annotations

import anyio
import pytest

from catalog.effects import Effect, Reset
from catalog.testing import ScriptedServer, ScriptedTool
from server.bank.admission.proving import replayer
from server.curation.replaying import was_stopped_by_the_world
from server.execution.consent import GrantAll
from server.requests import RepairRequest

pytestmark = pytest.mark.anyio

TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


async def kept(desk, document, inputs, name="kept"):
    report = await desk.bank.repair(document, RepairRequest(inputs=inputs, save=name))
    assert report.skill == name, report.skill_reason
    skill = desk.store.head(name)
    return skill, replayer(desk.context.known(), desk.context, skill)


@pytest.fixture
def saying(node, document):
    return document(
        node("n", "s/say", {"text": "$inputs.text"}),
        outputs={"said": "$nodes.n.output#/text"},
        inputs={"text": {"type": "string"}},
    )


async def test_each_replay_runs_in_a_process_of_its_own_with_nothing_remembered(open_desk, saying):
    server = ScriptedServer([ScriptedTool("say", lambda n: {"text": n["text"]}, TEXT)])
    async with open_desk({"s": server}, effects={"s": {"*": Effect.PURE}}) as desk:
        skill, runner = await kept(desk, saying, {"text": "good day"})
        calls, starts = desk.count("say"), server.starts
        for _ in range(2):
            result = await runner.replay(skill, skill.tests[0])
            assert (result.passed, result.isolated, result.possible) == (True, True, True)
        assert (desk.count("say"), server.starts) == (calls + 2, starts + 2)


async def test_runs_that_share_a_process_start_it_once_and_anew_after_one_that_failed(open_desk, saying):
    def say(inputs):
        if inputs["text"] == "bad":
            raise ValueError("no")
        return {"text": inputs["text"]}

    server = ScriptedServer([ScriptedTool("say", say, TEXT)])
    async with open_desk({"s": server}, effects={"s": {"*": Effect.PURE}}) as desk:
        skill, runner = await kept(desk, saying, {"text": "good day"})
        starts: list[int] = []
        async with runner.sharing() as together:
            for text in ("one", "two", "bad", "three"):
                before = server.starts
                run = await together.run(skill, {"text": text})
                starts.append(server.starts - before)
                assert bool(run.faults) is (text == "bad")
        assert desk.context.connections.isolated_connections == frozenset()
    assert starts == [1, 0, 0, 1]


async def test_a_difference_names_its_place(open_desk, saying):
    answers = iter(["one", "one", "two", "two", "two", "two", "two", "two"])
    server = ScriptedServer([ScriptedTool("say", lambda _: {"text": next(answers)}, TEXT)])
    async with open_desk({"s": server}, effects={"s": {"*": Effect.PURE}}) as desk:
        skill, runner = await kept(desk, saying, {"text": "x"})
        test = skill.tests[0].model_copy(update={"outputs": {"said": "three"}})
        result = await runner.replay(skill, test)
        apart = await runner.replay(skill, test.model_copy(update={"volatile": ("/said",)}))
    assert (result.passed, result.detail) == (False, "outputs differ at /said")
    assert apart.passed


class TestWhatCosts:
    @pytest.fixture
    def saving(self, node, document):
        return document(
            node("hash", "hashes/sha256", {"text": "$inputs.text"}),
            node("save", "notes/save_note", {"text": "$nodes.hash.output#/digest"}),
            outputs={"count": "$nodes.save.output#/count"},
            inputs={"text": {"type": "string"}},
        )

    async def test_is_answered_from_what_was_recorded(self, open_desk, saving):
        async with open_desk(consent=GrantAll()) as desk:
            skill, runner = await kept(desk, saving, {"text": "a"})
            result = await runner.replay(skill, skill.tests[0])
            assert desk.count("save_note") == 1
        assert (result.passed, result.possible) == (True, True)

    async def test_is_refused_with_other_arguments(self, open_desk, saving):
        async with open_desk(consent=GrantAll()) as desk:
            skill, runner = await kept(desk, saving, {"text": "a"})
            other = skill.tests[0].model_copy(update={"inputs": {"text": "b"}})
            result = await runner.replay(skill, other)
            assert desk.count("save_note") == 1
        assert (result.passed, result.possible) == (False, False)
        assert "never replayed" in result.detail

    async def test_a_node_takes_no_other_nodes_answer(self, open_desk, node, document):
        twice = document(
            node("first", "notes/save_note", {"text": "$inputs.one"}),
            node("second", "notes/save_note", {"text": "$inputs.two"}, after=["first"]),
            outputs={"count": "$nodes.second.output#/count"},
            inputs={"one": {"type": "string"}, "two": {"type": "string"}},
        )
        async with open_desk(consent=GrantAll()) as desk:
            skill, runner = await kept(desk, twice, {"one": "a", "two": "b"})
            test = skill.tests[0]
            right = await runner.replay(skill, test)
            swapped = test.model_copy(update={"inputs": {"one": "b", "two": "a"}})
            result = await runner.replay(skill, swapped)
            assert desk.count("save_note") == 2
        assert (right.passed, result.passed, result.possible) == (True, False, False)

    async def test_runs_where_its_server_is_thrown_away_afterwards(self, open_desk, saving):
        async with open_desk(reset={"notes": Reset.PROCESS}) as desk:
            skill, runner = await kept(desk, saving, {"text": "a"})
            before = desk.count("save_note")
            result = await runner.replay(skill, skill.tests[0])
            assert desk.count("save_note") == before + 1
        assert (result.passed, result.isolated) == (True, True)


async def test_a_run_that_the_world_stopped_is_told_from_one_that_is_wrong(open_desk, node, document):
    is_slow = False

    async def say(arguments):
        if is_slow:
            await anyio.sleep_forever()
        return {"text": arguments["text"]}

    saying = document(
        node("n", "s/say", {"text": "$inputs.text"}, timeout_seconds=0.3),
        outputs={"said": "$nodes.n.output#/text"},
        inputs={"text": {"type": "string"}},
    )
    server = ScriptedServer([ScriptedTool("say", say, TEXT)])
    async with open_desk({"s": server}, effects={"s": {"*": Effect.PURE}}) as desk:
        skill, runner = await kept(desk, saying, {"text": "good day"})
        right = await runner.run(skill, {"text": "x"})
        is_slow = True
        run = await runner.run(skill, {"text": "x"})
        result = await runner.replay(skill, skill.tests[0])
    assert (was_stopped_by_the_world(right), was_stopped_by_the_world(run)) == (False, True)
    assert (result.passed, result.possible) == (False, False)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        pytest.param({"text": "fine"}, "", id="fits"),
        pytest.param({"text": 5}, "/said", id="another-type"),
        pytest.param({"other": 5}, "text", id="not-there"),
    ],
)
async def test_an_output_is_held_to_the_skills_own_signature(open_desk, saying, answer, said):
    now = {"text": "at first"}
    server = ScriptedServer([ScriptedTool("say", lambda _: dict(now), TEXT)])
    async with open_desk({"s": server}, effects={"s": {"*": Effect.READ}}) as desk:
        skill, runner = await kept(desk, saying, {"text": "x"})
        now.clear()
        now.update(answer)
        fault = runner.fault_of_output(skill, await runner.run(skill, {"text": "x"}))
    assert (fault == "") is (said == "")
    assert said in fault
