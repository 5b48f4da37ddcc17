"""A model that edits: what it is told, how its answer is read, and what becomes of a bad one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from pydantic import JsonValue

from catalog.effects import Effect, EffectTable
from server.backends.backend import Request
from server.backends.errors import BackendUnavailable
from server.backends.scripted import ScriptedBackend
from server.evolution.building import base_candidate, edited
from server.evolution.edit_prompt import Known, edit_prompt, edit_schema
from server.evolution.edit_reading import read_edits
from server.evolution.options import SearchOptions, Switches
from server.planning.view import View
from server.requests import Budget
from skills_store.experience.spans import stripped
from skills_store.workflow.check import check_workflow
from skills_store.workflow.edits import EditParameter, InsertNode, RemoveNode, Reorder, SwapTool
from skills_store.workflow.faults import CheckFailed, PostconditionFailed
from skills_store.workflow.model import Workflow
from tests.worlds import (
    FREE,
    node,
    scene,
    view_of,
    weather_plan,
    weather_servers,
    workflow,
    world_of,
)

pytestmark = pytest.mark.anyio

TASK, OSLO = "Tell the current temperature in Oslo in fahrenheit", {"city": "Oslo"}
RIGHT, NEVER = "output.fahrenheit == `41`", "output.fahrenheit == `-12345`"
BROKEN = weather_plan(now={"town": "$inputs.city"})
SWAPPED = weather_plan(
    conv={"value": "$nodes.now.output#/temp_c", "from_unit": "kelvin", "to_unit": "kelvin"}
)
SEEN: dict[str, JsonValue] = {"now": {"station": "north", "temp_c": 5.0}}
TOOLS = {tool.id.tool: tool for tool in world_of().snapshot}


def seen(planned: Workflow = BROKEN, effects: EffectTable = FREE) -> View:
    world = world_of(TASK, OSLO, effects=effects)
    return view_of(planned, *check_workflow(planned, world.snapshot), world=world, outputs=SEEN)


def said(*edits: Mapping[str, Any]) -> str:
    return json.dumps({"edits": list(edits)})


def parameter(node_id: str, name: str, value: Any) -> dict[str, Any]:
    return {"op": "edit_parameter", "node": node_id, "parameter": name, "value": value}


class TestReading:
    @pytest.mark.parametrize(
        ("entry", "expected"),
        [
            pytest.param(
                parameter("conv", "to_unit", "kelvin"),
                EditParameter(node="conv", pointer="/to_unit", value="kelvin"),
                id="literal",
            ),
            pytest.param(
                parameter("conv", "value", "$now.temp_c"),
                EditParameter(node="conv", pointer="/value", value="$nodes.now.output#/temp_c"),
                id="reference in short",
            ),
            pytest.param(
                parameter("now", "city", "$inputs.city"),
                EditParameter(node="now", pointer="/city", value="$inputs.city"),
                id="input",
            ),
            pytest.param(
                parameter(
                    "conv",
                    "value",
                    {"context": "$now", "selector": "temp_c", "type": "jmespath"},
                ),
                EditParameter(
                    node="conv",
                    pointer="/value",
                    value={"context": "$nodes.now.output", "selector": "temp_c", "type": "jmespath"},
                ),
                id="selector",
            ),
            pytest.param(
                parameter("now", "town", None),
                EditParameter(node="now", pointer="/town", remove=True),
                id="taken out",
            ),
            pytest.param(
                parameter("outputs", "fahrenheit", "$conv.converted_value"),
                EditParameter(node=None, pointer="/fahrenheit", value="$nodes.conv.output#/converted_value"),
                id="output",
            ),
            pytest.param(
                {
                    "op": "swap_tool",
                    "node": "now",
                    "tool": "forecast",
                    "arguments": {"city": "O", "days": 1},
                },
                SwapTool(node="now", tool=TOOLS["forecast"].id, arguments={"city": "O", "days": 1}),
                id="swap",
            ),
            pytest.param(
                {
                    "op": "insert_node",
                    "node": "plus",
                    "tool": "add",
                    "arguments": {"a": "$now.temp_c", "b": 1},
                    "before": "conv",
                },
                InsertNode.model_validate(
                    {
                        "planned": node("plus", "sums/add", {"a": "$nodes.now.output#/temp_c", "b": 1}),
                        "position": 1,
                    }
                ),
                id="insert",
            ),
            pytest.param(
                {"op": "reorder", "node": "conv", "after": ["now"]},
                Reorder(node="conv", after=("now",)),
                id="reorder",
            ),
            pytest.param(
                {"op": "remove_node", "node": "now", "instead": "$inputs.city"},
                RemoveNode(node="now", rewired={"$nodes.now.output#/temp_c": "$inputs.city"}),
                id="remove",
            ),
        ],
    )
    def test_an_edit_is_read(self, entry: dict[str, Any], expected: Any):
        (edit,) = read_edits(said(entry), seen(), TOOLS).edits
        assert edit.model_copy(update={"because": ""}) == expected

    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            pytest.param("I would change the city.", "not JSON", id="prose"),
            pytest.param(said({"op": "explode"}), "no edit is called 'explode'", id="unknown op"),
            pytest.param(said(parameter("nov", "city", 1)), "no node 'nov'; there is now, conv", id="node"),
            pytest.param(said(parameter("now", "a/b", 1)), "nothing is at /a", id="place"),
            pytest.param(
                said(parameter("outputs", "fahrenheit", 41)), "no longer be fed", id="output as a literal"
            ),
            pytest.param(
                said({"op": "remove_node", "node": "now"}), "say with 'instead'", id="removes what is read"
            ),
            pytest.param(
                said({"op": "swap_tool", "node": "now", "tool": "nope", "arguments": {}}),
                "there is no tool 'nope'",
                id="unknown tool",
            ),
            pytest.param(
                said({"op": "insert_node", "node": "X!", "tool": "add", "arguments": {}}),
                "String should match",
                id="id",
            ),
            pytest.param(
                said({"op": "reorder", "node": "now", "after": ["conv"]}), "wait for itself", id="cycle"
            ),
            pytest.param("[1]", "an edit is an object", id="not an object"),
        ],
    )
    def test_what_cannot_be_read_or_made_is_said(self, text: str, problem: str):
        reading = read_edits(text, seen(), TOOLS)
        assert reading.edits == ()
        assert problem in reading.problems[0]

    def test_one_bad_edit_makes_the_others_no_worse(self):
        reading = read_edits(
            said(parameter("nov", "x", 1), parameter("conv", "to_unit", "kelvin")), seen(), TOOLS
        )
        assert (len(reading.edits), len(reading.problems)) == (1, 1)

    def test_a_model_cannot_bring_in_a_write(self):
        effects = EffectTable({**FREE.effects, "tables": {"*": Effect.WRITE}})
        entry = {"op": "insert_node", "node": "t", "tool": "create_table", "arguments": {"table": "t"}}
        reading = read_edits(said(entry), seen(effects=effects), TOOLS)
        assert "may change something for good" in reading.problems[0]


async def counted(text: str) -> int:
    return len(text) // 4


class TestPrompt:
    async def told(self, view: View, budget: int = 3000, tabu: tuple[str, ...] = ()) -> str:
        prompt = await edit_prompt(view, Known(tabu), counted, budget, lambda value: value)
        return "\n".join(message.text for message in prompt.messages)

    async def test_it_shows_arguments_schemas_faults_answers_and_what_was_tried(self):
        text = await self.told(seen(), tabu=("now: city = 5",))
        assert '"arguments": {"town": "$inputs.city"}' in text
        assert "current(city: string)" in text
        assert "'town' is no argument" in text
        assert '{"station": "north", "temp_c": 5.0}' in text
        assert "Tried in vain:\n- now: city = 5" in text

    async def test_it_never_holds_what_a_check_says(self):
        found: JsonValue = {"fahrenheit": 40}
        view = view_of(
            SWAPPED,
            CheckFailed(message="output.fahrenheit == `-12345` does not hold", found=found),
            PostconditionFailed(message="output.x == `secret`", node="now"),
            world=world_of(TASK, OSLO),
        )
        text = await self.told(view)
        assert "-12345" not in text
        assert "secret" not in text
        assert "the check does not hold" in text

    async def test_what_is_far_from_a_fault_leaves_first_where_tokens_are_few(self):
        far = [node(f"far{i}", "weather/forecast", {"city": "Rome", "days": i}) for i in range(30)]
        planned = workflow(
            node("now", "weather/current", {"town": "$inputs.city"}),
            node(
                "conv",
                "units/convert_temperature",
                {"value": "$nodes.now.output#/temp_c", "from_unit": "celsius", "to_unit": "kelvin"},
            ),
            *far,
            outputs={"fahrenheit": "$nodes.conv.output#/converted_value"},
            inputs=("city",),
        )
        whole, short = await self.told(seen(planned), 30_000), await self.told(seen(planned), 900)
        assert "far29" in whole
        assert len(short) < len(whole) / 2
        assert "far29" not in short
        assert "(30 more nodes, not concerned)" in short
        assert '"town"' in short
        assert '"conv"' in short, "who reads the faulty node is shown"

    async def test_the_schema_knows_the_nodes_and_the_tools(self):
        prompt = await edit_prompt(seen(), Known(), counted, 3000, lambda value: value)
        schema: Any = edit_schema(seen(), prompt.tools)
        options = schema["properties"]["edits"]["items"]["anyOf"]
        assert [o["properties"]["op"]["const"] for o in options[:3]] == [
            "edit_parameter",
            "remove_node",
            "reorder",
        ]
        assert options[0]["properties"]["node"]["enum"] == ["now", "conv", "outputs"]
        called = {o["properties"]["tool"]["const"] for o in options[3:]}
        assert called == set(prompt.tools) >= {"current", "convert_temperature"}

    @pytest.mark.parametrize("tabu", [(), ("now: city = 5",)])
    async def test_experience_can_be_taken_out_to_the_byte(self, tabu: tuple[str, ...]):
        told = (("one", "When to use: x. Content: y."), ("calls of weather/current", "3 of 4 calls worked"))

        def redact(value: Any) -> Any:
            return json.loads(json.dumps(value).replace("calls", "[secret]"))

        plain = await edit_prompt(seen(), Known(tabu), counted, 3000, redact)
        having = await edit_prompt(seen(), Known(tabu, told), counted, 3000, redact)
        texts = [message.text for message in having.messages]
        assert "- 3 of 4 [secret] worked" in texts[1]
        assert [span.unit for span in having.experience] == ["", "one", "calls of weather/current"]
        assert stripped(texts, having.experience) == tuple(message.text for message in plain.messages)
        assert plain.experience == ()

    async def test_secrets_are_taken_out(self):
        def redact(value: Any) -> Any:
            return json.loads(json.dumps(value).replace("Oslo", "[secret]"))

        planned = weather_plan(now={"city": "Oslo"})
        prompt = await edit_prompt(seen(planned), Known(("now: city = Oslo",)), counted, 3000, redact)
        assert "Oslo" not in prompt.messages[1].text


FIX = said(
    parameter("conv", "from_unit", "celsius"),
    parameter("conv", "to_unit", "fahrenheit"),
)
OPTIONS = SearchOptions(
    strategy="population", ladder_first=False, lowest_intensity=0.0, highest_intensity=0.0
)


class TestSearching:
    async def searched(self, model: ScriptedBackend, base: Workflow = SWAPPED, **budget: Any):
        async with scene(weather_servers(), RIGHT, plan=base, task=TASK, inputs=OSLO) as it:
            return await it.repair(
                base, Budget(**{"candidates": 40, **budget}), options=OPTIONS, editor=model
            )

    async def test_a_models_edit_is_built_run_and_counted(self):
        model = ScriptedBackend(lambda _: FIX)
        result = await self.searched(model)
        assert result.best.evaluation.status == "verified"
        made = next(r.made for r in result.records if r.made.by == "model")
        assert (made.mode, made.tokens > 0) == ("exploit", True)
        assert result.tokens == sum(record.made.tokens for record in result.records) > 0
        assert model.requests[0].schema_name == "edits"

    async def test_a_bad_answer_is_reproached_once_and_exactly(self):
        answers = iter([said(parameter("conv", "unit", "fahrenheit")), FIX])
        model = ScriptedBackend(lambda _: next(answers, FIX))
        result = await self.searched(model)
        assert result.best.evaluation.status == "verified"
        assert "'unit' is no argument" in model.requests[1].messages[-1].text

    async def test_a_policy_flag_is_not_let_into_a_call(self):
        model = ScriptedBackend(lambda _: said(parameter("conv", "strict_schema", False)))
        result = await self.searched(model, candidates=15)
        assert all(
            "strict_schema" not in n.arguments for r in result.records for n in r.candidate.workflow.nodes
        )

    @pytest.mark.parametrize("answer", ["", "no", "{}", '{"edits": []}', "[[[", '{"edits": "all"}'])
    async def test_an_answer_of_nothing_leaves_the_rules_to_it(self, answer: str):
        result = await self.searched(ScriptedBackend(lambda _: answer))
        assert result.best.evaluation.status == "verified"
        assert {r.made.by for r in result.records if r.made.mode == "exploit"} <= {"faults", "random"}

    async def test_a_model_that_does_not_answer_ends_nothing(self):
        model = ScriptedBackend(lambda _: BackendUnavailable("scripted:model: gone"))
        result = await self.searched(model)
        assert result.best.evaluation.status == "verified"
        assert result.tokens == 0
        assert "scripted:model: gone" in " ".join(result.problems)

    async def test_the_budget_of_tokens_is_kept_and_the_search_goes_on(self):
        def useless(asked: Request) -> str:
            del asked
            return said(parameter("conv", "value", Random(len(model.requests)).random()))

        model = ScriptedBackend(useless)
        async with scene(weather_servers(), NEVER, plan=SWAPPED, task=TASK, inputs=OSLO) as it:
            result = await it.repair(
                SWAPPED, Budget(candidates=40, tokens=4000), options=OPTIONS, editor=model
            )
        assert 0 < result.tokens <= 4000
        assert len(result.records) == 40
        assert result.stopped == "candidates"
        assert any("budget of tokens" in problem for problem in result.problems)

    async def test_no_request_ever_holds_an_assertions_literal(self):
        model = ScriptedBackend(lambda _: said(parameter("conv", "to_unit", "kelvin")))
        async with scene(weather_servers(), NEVER, plan=SWAPPED, task=TASK, inputs=OSLO) as it:
            await it.repair(SWAPPED, Budget(candidates=30), options=OPTIONS, editor=model)
        assert model.requests
        assert all("12345" not in m.text for request in model.requests for m in request.messages)

    async def test_without_evidence_a_model_sees_no_fault_and_no_answer(self):
        model = ScriptedBackend(lambda _: said(parameter("now", "city", "Rome")))
        blind = replace(OPTIONS, switches=Switches(evidence=False))
        async with scene(weather_servers(), NEVER, plan=BROKEN, task=TASK, inputs=OSLO) as it:
            await it.repair(BROKEN, Budget(candidates=10), options=blind, editor=model)
        text = model.requests[0].messages[1].text
        assert "What is wrong" not in text
        assert "answered" not in text


def test_the_edits_of_the_fix_make_the_plan_right():
    reading = read_edits(FIX, seen(SWAPPED), TOOLS)
    after = edited(base_candidate(SWAPPED).workflow, reading.edits)
    assert after.nodes[1].arguments["to_unit"] == "fahrenheit"
