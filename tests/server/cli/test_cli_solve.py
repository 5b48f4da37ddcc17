"""What `solve` shows of a model's part: the levels and their cost, the words, the judge's opinion."""

from __future__ import annotations

import pytest

from server.planning.escalation import LevelReport
from server.reports import AnswerReport, JudgeReport, RepairReport
from server.requests import Budget, SolveRequest

LEVELS = (
    LevelReport(
        level="plan", status="failed", plans=1, tokens=900, calls=2, candidates=1, seconds=3.25, cost_usd=0.01
    ),
    LevelReport(level="repair", status="verified", calls=3, candidates=7, seconds=0.5),
    LevelReport(level="sample", note="the budget of tokens is spent"),
)
SOLVED = RepairReport(
    status="verified",
    outputs={"product": 42},
    workflow={"name": "plan"},
    route="dynamic",
    tokens=1_234,
    model="anthropic:some-model",
    solved_by="repair",
    levels=LEVELS,
    answer=AnswerReport(text="It is 42.", nodes=("n1",), by="model", problems=("43 stands in no output",)),
    judgement=JudgeReport(
        scores={"grounding": 8.5}, score=0.85, disagreement={"grounding": 2.0}, readings=4, asked=5, model="m"
    ),
)


def test_what_was_asked_for_reaches_the_bank(cli):
    cli.bank.answers["solve"] = SOLVED
    cli("solve", "Multiply", "--answer", "--judge", "--budget-tokens", "500")
    [(_, task, request)] = cli.bank.asked
    assert task == "Multiply"
    assert request == SolveRequest(answer=True, judge=True, budget=Budget(tokens=500))


def test_each_level_is_shown_with_its_cost_and_the_one_that_solved_it(cli):
    cli.bank.answers["solve"] = SOLVED
    shown = cli("solve", "Multiply").out
    rows = [line.split() for line in shown.splitlines()]
    assert ["·", "plan", "1", "900", "2", "1", "3.2", "failed"] in rows
    assert ["✓", "repair", "0", "0", "3", "7", "0.5", "verified"] in rows
    assert "the budget of tokens is spent" in shown
    assert "anthropic:some-model: 1234 tokens, $0.0100" in shown


def test_words_and_opinion_are_shown_with_what_is_wrong_with_them(cli):
    cli.bank.answers["solve"] = SOLVED
    shown = cli("solve", "Multiply").out
    assert "It is 42." in shown
    assert "rests on n1" in shown
    assert "43 stands in no output" in shown
    assert "0.85 by m, 4 of 5 readings; an opinion, no proof" in shown


def test_a_model_that_could_not_plan_is_told(cli):
    problem = "the provider said to come back later"
    report = SOLVED.model_copy(update={"model_problem": problem, "answer": None, "judgement": None})
    cli.bank.answers["solve"] = report
    ran = cli("solve", "Multiply")
    assert f"anthropic:some-model did not plan: {problem}" in ran.out
    assert "Answer" not in ran.out


def test_without_a_model_nothing_of_it_is_shown(cli):
    cli.bank.answers["solve"] = RepairReport(status="verified", outputs={"a": 1}, workflow={})
    shown = cli("solve", "Multiply").out
    assert "Levels" not in shown
    assert "tokens" not in shown


def test_json_has_the_levels(cli):
    cli.bank.answers["solve"] = SOLVED
    answer = cli("solve", "Multiply", "--json").json
    assert (answer["solved_by"], answer["tokens"]) == ("repair", 1_234)
    assert [level["level"] for level in answer["levels"]] == ["plan", "repair", "sample"]
    assert answer["answer"]["by"] == "model"


@pytest.mark.parametrize("value", ["-1", "many"])
def test_a_budget_of_tokens_is_a_count(cli, value):
    assert cli("solve", "Multiply", "--budget-tokens", value).code == 2
