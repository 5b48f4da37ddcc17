"""The judge: six scores, five shuffled readings, no score without readings, never more than advice."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from server.backends.errors import BackendOverloaded
from server.backends.roles import with_backend
from server.backends.scripted import ScriptedBackend
from server.bank import Bank
from server.evolution.options import SearchOptions
from server.requests import Budget, RepairRequest, SolveRequest
from server.verification import Checks
from server.verification.judge import (
    AXES,
    READINGS,
    JudgedRun,
    JudgedStep,
    judge_request,
    judge_run,
    read_scores,
)

pytestmark = pytest.mark.anyio

NAMES = [name for parts in AXES.values() for name in parts]
STEP = JudgedStep(
    "n1", "calculator/multiply", "Multiply two numbers.", {"a": 6}, "succeeded", {"result": 42}, 0
)
RUN = JudgedRun("Multiply 6 by 7.", [STEP], {"product": 42})


def scores(value: Any = 8, **others: Any) -> str:
    return json.dumps({"reason": "it did", **dict.fromkeys(NAMES, value), **others})


async def judged(*answers: Any):
    return await judge_run(RUN, ScriptedBackend(answers), seed=7, deadline_seconds=5)


def test_there_are_six_scores_on_three_axes():
    assert [len(parts) for parts in AXES.values()] == [2, 2, 2]
    assert len(set(NAMES)) == 6


async def test_five_readings_are_averaged_and_their_disagreement_told():
    found = await judged(scores(8), scores(6), scores(7), scores(7, grounding=2), scores(7))
    assert (found.readings, found.asked, found.problems) == (5, 5, ())
    assert found.scores["task_fulfillment"] == 7
    assert found.scores["grounding"] == 6
    assert found.axes["task_completion"] == 6.5
    assert (found.disagreement["grounding"], found.disagreement["task_fulfillment"]) == (6, 2)
    assert found.score == pytest.approx((7 * 5 + 6) / 60)


@pytest.mark.parametrize(
    "answer",
    ["fine", "{}", scores(0), scores(11), scores("good"), scores(True), scores(8, grounding=None)],
    ids=["words", "empty", "below", "above", "a word", "a truth", "one missing"],
)
async def test_a_reading_that_cannot_be_used_is_missing_and_never_a_number(answer: str):
    found = await judged(scores(9), answer, scores(9), scores(9), answer)
    assert (found.readings, len(found.problems)) == (3, 2)
    assert found.score == 0.9


async def test_fewer_than_three_readings_are_no_score_and_say_so():
    found = await judged(scores(9), "no", BackendOverloaded("come back later"), "no", scores(9))
    assert (found.score, found.scores, found.readings) == (None, {}, 2)
    assert "reading 3: come back later" in found.problems
    assert found.problems[-1] == "no score: 2 of 5 readings could be used, 3 are needed"


def test_scores_may_come_as_text_or_inside():
    assert read_scores(f"```json\n{scores('8/10')}\n```")[0] == dict.fromkeys(NAMES, 8.0)
    assert read_scores(json.dumps({"scores": dict.fromkeys(NAMES, 5)}))[0] == dict.fromkeys(NAMES, 5.0)


def test_axes_scores_and_bands_are_shuffled_from_the_seed():
    texts = [judge_request(RUN, 7, reading).messages[0].text for reading in range(READINGS)]
    assert len(set(texts)) == READINGS
    assert texts == [judge_request(RUN, 7, reading).messages[0].text for reading in range(READINGS)]
    assert texts[0] != judge_request(RUN, 8, 0).messages[0].text
    assert len({tuple(sorted(text)) for text in texts}) == 1

    def order(text: str, words: list[str]) -> tuple[str, ...]:
        return tuple(sorted(words, key=text.index))

    many = [judge_request(RUN, seed, 0).messages[0].text.partition("Axis")[2] for seed in range(20)]
    assert len({order(text, ["planning:", "tool usage:", "task completion:"]) for text in many}) > 1
    assert len({order(text, ["- grounding", "- task_fulfillment"]) for text in many}) == 2
    bands = [text.partition("- grounding")[2] for text in many]
    assert len({order(text, ["1-3:", "4-6:", "7-8:", "9-10:"]) for text in bands}) > 3


def test_what_is_judged_stands_in_front_and_is_the_same_in_every_reading():
    texts = [judge_request(RUN, 7, reading).messages[0].text for reading in range(READINGS)]
    assert len({text.partition("Axis")[0] for text in texts}) == 1
    assert 'n1: calculator/multiply({"a": 6}) succeeded: {"result": 42}' in texts[0]


PLAN = json.dumps({"nodes": [{"tool": "multiply", "id": "n1", "arguments": {"a": 6, "b": 7}}], "outputs": {}})


async def solved(desk: Any, *answers: Any, **request: Any):
    bank = Bank(replace(desk.context, models=with_backend(ScriptedBackend([PLAN, *answers]))))
    given = {
        "budget": Budget(seconds=30, calls=60, candidates=40),
        "route": "dynamic",
        "judge": True,
        **request,
    }
    return await bank.solve("Multiply 6 by 7.", SolveRequest(**given))


async def test_a_judge_alone_admits_to_guidance_only_and_verifies_nothing(open_desk):
    async with open_desk() as desk:
        report = await solved(desk, *[scores(9)] * 5)
    assert report.status == "succeeded"
    assert report.judgement.score == 0.9
    assert [(said.by, said.passed) for said in report.verifications] == [("judge", True)]
    assert report.skill_state == "context_only"


async def test_a_judge_that_is_against_teaches_nothing(open_desk):
    async with open_desk() as desk:
        report = await solved(desk, *[scores(3)] * 5)
    assert (report.status, report.skill, report.verifications) == ("succeeded", None, ())


async def test_a_judge_never_overrules_a_check(open_desk):
    async with open_desk() as desk:
        report = await solved(desk, *[scores(1)] * 5, checks=Checks(("output.result == `42`",)))
    assert report.status == "verified"
    assert [said.by for said in report.verifications] == ["assertion"]
    assert report.skill is not None


async def test_no_model_no_judge_and_never_a_silent_score(open_desk):
    async with open_desk() as desk:
        request = SolveRequest(checks=Checks(("output.product == `42`",)), judge=True)
        report = await desk.bank.solve("Multiply 6 by 7.", request)
    assert report.judgement.score is None
    assert report.judgement.scores == {}
    assert "there is no model to judge" in report.judgement.problems[0]


BROKEN = {
    "name": "product",
    "inputs": {"type": "object", "properties": {"a": {"type": "number"}}, "required": ["a"]},
    "nodes": [
        {
            "id": "n1",
            "tool": {"server": "calculator", "tool": "multiply"},
            "arguments": {"a": "$inputs.a", "b": 6},
        }
    ],
    "outputs": {"product": "$nodes.n1.output#/result"},
}


async def repaired(desk: Any, *answers: Any, tokens: int = 90_000):
    bank = Bank(replace(desk.context, models=with_backend(ScriptedBackend([*answers]))))
    request = RepairRequest(
        task="Multiply 6 by 7.",
        inputs={"a": 6},
        checks=Checks(("output.product == `42`",)),
        budget=Budget(seconds=30, calls=60, candidates=2, tokens=tokens),
        search=SearchOptions(strategy="ladder"),
        judge=True,
    )
    return await bank.repair(BROKEN, request)


async def test_a_judge_scores_the_candidates_of_a_repair_and_its_tokens_count(open_desk):
    async with open_desk() as desk:
        report = await repaired(desk, *[scores(4)] * 5, *[scores(8)] * 5)
    assert [(one.score, one.scored_by) for one in report.lineage] == [(0.4, "judge"), (0.8, "judge")]
    assert report.tokens > 0


async def test_a_judge_whose_tokens_are_spent_leaves_the_rules_to_score(open_desk):
    async with open_desk() as desk:
        report = await repaired(desk, scores(4), tokens=1)
    assert {one.scored_by for one in report.lineage} == {"rules"}
    assert report.tokens == 0
