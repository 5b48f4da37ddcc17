"""Solving with a model: cheap attempts first, every level counted, no budget passed, nothing leaked."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import Any

import pytest

from catalog.testing import Reply, ScriptedServer, ScriptedTool
from server.backends.backend import Completion, Request, Usage
from server.backends.errors import BackendOverloaded
from server.backends.roles import with_backend
from server.backends.scripted import ScriptedBackend
from server.bank import Bank
from server.requests import Budget, SolveRequest
from server.verification import Checks

pytestmark = pytest.mark.anyio

TASK = "Multiply 6 by 7."
SIX_BY_SEVEN = Checks(("output.product == `42`",))
FAST = Budget(seconds=30, calls=100, candidates=60)


def step(tool: str, node_id: str = "n1", **arguments: Any) -> dict[str, Any]:
    return {"tool": tool, "id": node_id, "arguments": arguments}


def plan(*nodes: Any, **outputs: str) -> str:
    return json.dumps({"nodes": nodes, "outputs": outputs})


RIGHT = plan(step("multiply", a=6, b=7), product="$n1.result")
WRONG_FIELD = plan(step("multiply", a=6, b=7), product="$n1.product")
WRONG_TOOL = plan(step("sha256", text="6"), product="$n1.digest")


def bank_of(desk: Any, model: ScriptedBackend) -> Bank:
    return Bank(replace(desk.context, models=with_backend(model)))


def levels_of(report: Any) -> list[str]:
    return [level.level for level in report.levels]


async def solved(desk: Any, model: ScriptedBackend, task: str = TASK, **request: Any):
    given = {"checks": SIX_BY_SEVEN, "budget": FAST, "route": "dynamic", **request}
    return await bank_of(desk, model).solve(task, SolveRequest(**given))


async def test_a_right_plan_is_run_and_nothing_more_is_asked(open_desk):
    model = ScriptedBackend([RIGHT])
    async with open_desk() as desk:
        report = await solved(desk, model)
        trace = desk.store.trace(report.trace_id)
    assert (report.status, report.solved_by, levels_of(report)) == ("verified", "plan", ["plan"])
    assert (report.outputs, report.calls) == ({"product": 42}, 1)
    assert (trace.level, report.model, report.model_problem) == ("plan", model.name, None)
    assert report.tokens == report.levels[0].tokens > 0
    assert (report.levels[0].plans, report.levels[0].calls, report.levels[0].candidates) == (1, 1, 1)


async def test_deterministic_repair_comes_second_and_costs_no_token(open_desk):
    model = ScriptedBackend([WRONG_FIELD])
    async with open_desk() as desk:
        report = await solved(desk, model)
    assert (report.status, report.solved_by) == ("verified", "repair")
    assert levels_of(report) == ["plan", "repair"]
    assert report.levels[1].tokens == 0
    assert report.levels[1].candidates > 0
    assert len(model.requests) == 1


async def test_two_samples_at_a_half_come_third_and_the_more_promising_runs_first(open_desk):
    model = ScriptedBackend(["I would multiply.", (WRONG_TOOL, RIGHT)])
    async with open_desk() as desk:
        report = await solved(desk, model)
        assert desk.count("sha256") == 0
    assert (report.status, report.solved_by) == ("verified", "sample")
    assert levels_of(report) == ["plan", "repair", "sample"]
    assert report.levels[1].note == "there is no plan to repair"
    first, second = model.requests
    assert (first.temperature, first.n) == (0.0, 1)
    assert (second.temperature, second.n) == (0.5, 2)
    assert "it holds no {" in second.messages[-1].text


async def test_where_a_wire_does_not_sample_the_prompt_makes_the_difference(open_desk):
    model = ScriptedBackend(["no", "no", RIGHT], samples=False)
    async with open_desk() as desk:
        report = await solved(desk, model)
    assert report.solved_by == "sample"
    _, one, other = model.requests
    assert one.n == other.n == 1
    assert one.messages[0] == other.messages[0]
    assert one.messages[-1] != other.messages[-1]


NAMED = "Compute the sha256 hash of the fruit that everybody calls green."
PEAR = hashlib.sha256(b"pear").hexdigest()


def hashed(text: str) -> str:
    return plan(step("sha256", text=text), digest="$n1.digest")


async def test_reflection_comes_last_and_sees_the_faults_exactly_and_no_check(open_desk):
    plans = iter([hashed("apple"), (hashed("lime"), hashed("kiwi")), hashed("pear")])
    model = ScriptedBackend(lambda asked: next(plans) if asked.schema_name == "plan" else '{"edits": []}')
    checks = Checks((f"output.digest == '{PEAR}'",))
    async with open_desk() as desk:
        report = await solved(desk, model, NAMED, checks=checks)
    assert (report.status, report.solved_by) == ("verified", "reflect")
    assert levels_of(report) == ["plan", "repair", "sample", "evolve", "reflect"]
    assert report.levels[3].tokens > 0, "evolution asks the model for edits when the ladder is at its end"
    assert sum(level.tokens for level in report.levels) == report.tokens
    asked = model.requests[-1].messages
    assert asked[:2] == model.requests[0].messages
    assert "edits" in {request.schema_name for request in model.requests}
    assert "the check does not hold" in asked[-1].text
    assert hashlib.sha256(
        json.loads(asked[-2].text)["nodes"][0]["arguments"]["text"].encode()
    ).hexdigest() in (asked[-1].text)
    assert all(PEAR not in message.text for request in model.requests for message in request.messages)


async def test_the_faults_of_a_failed_call_reach_the_reflection(open_desk):
    def refuse(arguments: Any) -> Any:
        return Reply.text(f"Error: {arguments['code']!r} is no code of three letters", is_error=True)

    def make() -> list[ScriptedTool]:
        takes = {"type": "object", "properties": {"code": {"type": "string"}}, "required": ["code"]}
        return [ScriptedTool("find_airport", refuse, takes, description="Find an airport by its code.")]

    answer = plan(step("find_airport", code="Oslo"), airport="$n1")
    model = ScriptedBackend(lambda _: answer)
    async with open_desk({"air": ScriptedServer(make)}, effects={}) as desk:
        report = await solved(desk, model, "Find the airport of Oslo", checks=Checks(), allow=("air/*",))
    assert report.status == "failed"
    assert levels_of(report)[-1] == "reflect"
    assert "'Oslo' is no code of three letters" in model.requests[-1].messages[-1].text


async def test_a_model_that_does_not_answer_is_told_and_planned_without(open_desk):
    model = ScriptedBackend([BackendOverloaded("scripted:model: come back later")])
    async with open_desk() as desk:
        report = await solved(desk, model)
    assert (report.status, report.solved_by) == ("verified", "evolve")
    assert report.model_problem == "scripted:model: come back later"
    assert report.levels[0].note == "scripted:model: come back later"
    assert [level.note for level in report.levels if level.level == "sample"] == ["the model does not answer"]
    assert len(model.requests) == 1


async def test_without_a_model_nothing_of_it_is_in_the_report(open_desk):
    async with open_desk() as desk:
        report = await desk.bank.solve(TASK, SolveRequest(checks=SIX_BY_SEVEN, budget=FAST))
    assert report.status == "verified"
    assert (report.model, report.solved_by, report.levels, report.tokens) == (None, None, (), 0)


async def test_no_tokens_ask_no_model(open_desk):
    model = ScriptedBackend([])
    async with open_desk() as desk:
        report = await solved(desk, model, budget=replace(FAST, tokens=0))
    assert (report.status, report.levels, model.requests) == ("verified", (), [])


@pytest.mark.parametrize("tokens", [500, 1_800, 3_000, 4_200])
async def test_the_budget_of_tokens_is_never_passed(open_desk, tokens):
    def at_length(request: Request) -> Completion:
        prompt = sum(len(message.text) for message in request.messages) // 4
        usage = Usage(prompt, 0, request.n * request.max_output_tokens)
        return Completion((WRONG_TOOL,) * request.n, ("end",) * request.n, "wordy", usage)

    model = ScriptedBackend(at_length)
    async with open_desk() as desk:
        report = await solved(desk, model, NAMED, budget=replace(FAST, tokens=tokens))
    assert report.tokens <= tokens
    assert any("budget of tokens" in level.note for level in report.levels)


async def test_without_a_check_a_plan_that_runs_is_not_called_verified(open_desk):
    model = ScriptedBackend([RIGHT])
    async with open_desk() as desk:
        report = await solved(desk, model, checks=Checks())
    assert (report.status, report.solved_by, report.skill) == ("succeeded", "plan", None)


async def test_a_step_nobody_asked_for_is_taken_out_before_it_changes_the_world(open_desk):
    needless = step("save_note", "n2", text="$n1.result")
    model = ScriptedBackend([plan(step("multiply", a=6, b=7), needless, product="$n1.result")])
    async with open_desk() as desk:
        report = await solved(desk, model, allow=("notes/*",))
        assert desk.count("save_note") == 0
    assert report.solved_by == "plan"


async def test_a_step_the_task_speaks_of_is_kept(open_desk):
    asked = step("save_note", "n2", text="{$n1.result}")
    model = ScriptedBackend([plan(step("multiply", a=6, b=7), asked, product="$n1.result")])
    async with open_desk() as desk:
        report = await solved(desk, model, "Multiply 6 by 7 and save a note of it.", allow=("notes/*",))
        assert desk.count("save_note") == 1
    assert report.solved_by == "plan"


async def test_secrets_are_taken_out_of_what_a_model_is_told(open_desk):
    secret = "sk-4711-very-secret"
    model = ScriptedBackend(lambda _: WRONG_TOOL)
    async with open_desk(secrets=(secret,)) as desk:
        await solved(desk, model, f"Multiply 6 by 7 with the key {secret}.", inputs={"key": secret})
    assert model.requests
    assert all(secret not in message.text for request in model.requests for message in request.messages)


async def test_what_is_known_stands_between_the_catalog_and_the_task(open_desk):
    model = ScriptedBackend([RIGHT])
    async with open_desk() as desk:
        await solved(desk, model, experiences=("multiply takes two numbers",), skills=("f(x) = x",))
    system, user = model.requests[0].messages
    assert "multiply(a: number, b: number) -> {result: number}" in system.text
    places = [
        user.text.index(part) for part in ("multiply takes two numbers", "f(x) = x", "Request: Multiply")
    ]
    assert places == sorted(places)


async def test_plans_that_wait_for_a_persons_leave_are_not_asked_for_again(open_desk):
    model = ScriptedBackend([plan(step("save_note", text="x"), saved="$n1.text")])
    async with open_desk() as desk:
        report = await solved(desk, model, "Save a note x", checks=Checks(("output.saved == 'y'",)))
    assert (report.status, len(model.requests)) == ("needs_approval", 1)


async def test_what_is_learned_from_a_models_plan_is_a_skill_like_any_other(open_desk):
    model = ScriptedBackend([RIGHT])
    async with open_desk() as desk:
        report = await solved(desk, model, "Multiply 6 by 7.", inputs={"one": 6, "other": 7})
    assert report.workflow["nodes"][0]["arguments"] == {"a": "$inputs.one", "b": "$inputs.other"}
    assert report.skill is not None
