"""Outputs in words: written from what tools answered, checked against it, a table without a model."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from server.backends.errors import BackendTimeout
from server.backends.roles import with_backend
from server.backends.scripted import ScriptedBackend
from server.bank import Bank
from server.planning.answer import Answered, Question, render_outputs, ungrounded, write_answer
from server.planning.conversation import converse
from server.requests import Budget, SolveRequest
from server.verification import Checks

pytestmark = pytest.mark.anyio

TASK = "Multiply 6 by 7."
PLAN = json.dumps({"nodes": [{"tool": "multiply", "id": "n1", "arguments": {"a": 6, "b": 7}}], "outputs": {}})
CHECKS = Checks(("output.product == `42`",))
FAST = Budget(seconds=30, calls=60, candidates=40)
QUESTION = Question(
    task="How many litres per 100 km is 300 miles on 7.5 gallons, as of 2026-03-01?",
    inputs={"miles": 300},
    outputs={"litres": 5.880364582},
    steps=[
        Answered("n1", "units/convert", {"km": 482.8032}),
        Answered("n2", "calc/divide", {"result": -0.0588}),
    ],
)


def words(text: str, *nodes: str) -> str:
    return json.dumps({"text": text, "nodes": nodes})


async def solved(desk: Any, *answers: Any, **request: Any):
    bank = Bank(replace(desk.context, models=with_backend(ScriptedBackend(answers))))
    given = {"checks": CHECKS, "budget": FAST, "route": "dynamic", "answer": True, **request}
    return await bank.solve(TASK, SolveRequest(**given))


async def test_a_model_puts_the_outputs_into_words_with_the_steps_they_rest_on(open_desk):
    async with open_desk() as desk:
        report = await solved(desk, PLAN, words("6 times 7 is 42.", "n1"))
    assert report.answer is not None
    assert report.answer.model_dump() == {
        "text": "6 times 7 is 42.",
        "nodes": ("n1",),
        "by": "model",
        "problems": (),
    }
    assert report.tokens > report.levels[0].tokens


async def test_what_has_no_ground_is_told_beside_the_words(open_desk):
    async with open_desk() as desk:
        report = await solved(desk, PLAN, words("It is 42, or 43 in other bases.", "n1", "n9"))
    assert report.answer.problems == (
        "it cites a step that did not run: n9",
        "43 stands in no output and no input",
    )


@pytest.mark.parametrize("answer", ["no words", "{}", '{"text": "  "}', BackendTimeout("too late")])
async def test_words_that_cannot_be_had_leave_the_table_and_the_reason(open_desk, answer):
    async with open_desk() as desk:
        report = await solved(desk, PLAN, answer)
    assert (report.answer.by, report.answer.text) == ("table", "product  42")
    assert report.answer.problems


async def test_without_a_model_the_outputs_are_a_table(open_desk):
    async with open_desk() as desk:
        report = await desk.bank.solve(TASK, SolveRequest(checks=CHECKS, budget=FAST, answer=True))
    assert (report.answer.by, report.answer.problems) == ("table", ())
    assert report.answer.nodes == tuple(node["id"] for node in report.workflow["nodes"])


async def test_nobody_asked_for_words_gets_none(open_desk):
    async with open_desk() as desk:
        report = await solved(desk, PLAN, answer=False)
    assert report.answer is None


async def test_a_failed_run_has_no_answer(open_desk):
    async with open_desk() as desk:
        report = await solved(desk, *["no plan"] * 9, checks=Checks(("output.product == `41`",)))
    assert (report.status, report.answer) == ("failed", None)


@pytest.mark.parametrize(
    "text",
    [
        "About 5.88 litres.",
        "5.880364582 litres over 482.8 km.",
        "482.80 km, which is 300 miles",
        "Between them lies -0.06.",
        "As of 2026-03-01 it is 6 litres",
        "no number at all",
        "5,88 Liter",
    ],
)
def test_numbers_that_stand_somewhere_are_grounded_however_rounded(text: str):
    assert ungrounded(text, QUESTION) == ()


@pytest.mark.parametrize("text", ["5.89 litres", "12 litres", "482.9 km", "58.8 litres", "5.8803646001"])
def test_numbers_that_stand_nowhere_are_not(text: str):
    assert len(ungrounded(text, QUESTION)) == 1


async def test_citing_no_step_is_told():
    written = await converse(ScriptedBackend([words("It is fine.")]), write_answer(QUESTION))
    assert written is not None
    assert written.problems == ("it cites no step that ran",)


def test_a_table_shows_every_output_and_no_terminal_escape():
    shown = render_outputs({"a": 1.5, "longer": {"b": [True]}, "text": "x\x1b[31my"})
    assert shown == 'a       1.5\nlonger  {"b": [true]}\ntext    xy'
