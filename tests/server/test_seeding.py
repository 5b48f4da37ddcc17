"""The seeded route: a near skill is where a plan starts from, with a model and without."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from server.backends.estimate import estimate_tokens
from server.backends.roles import with_backend
from server.backends.scripted import ScriptedBackend
from server.bank import Bank
from server.planning.seeding import Seed, seed_views
from server.requests import Budget, RepairRequest, SolveRequest
from server.verification import Checks

pytestmark = pytest.mark.anyio

NUMBER, TEXT = {"type": "number"}, {"type": "string"}
QUICK = Budget(seconds=30, calls=60, candidates=40)
POSITIVE = Checks(("output.value > `0`",))


async def taught(desk: Any) -> str:
    """Solve two like tasks, so that their skill is active."""
    for said in ("Convert 5 kilometers to meters", "Convert 7 miles to feet"):
        report = await desk.bank.solve(said, SolveRequest(checks=POSITIVE))
    assert report.skill_state == "active", report.skill_reason
    return report.skill


class TestWithoutAModel:
    async def test_the_skill_is_the_first_plan_for_a_task_that_says_nearly_the_same(self, open_desk):
        async with open_desk() as desk:
            name = await taught(desk)
            report = await desk.bank.solve(
                "Convert the length of 3 feet to meters", SolveRequest(checks=POSITIVE, budget=QUICK)
            )
            trace = desk.store.trace(report.trace_id)
            uses = desk.store.uses(name, 5)
        assert (report.status, report.route, report.candidates, report.calls) == ("verified", "seeded", 1, 1)
        assert report.outputs["value"] == pytest.approx(0.9144)
        assert any(reason.startswith(f"{name}@1 is near it") for reason in report.route_reasons)
        assert (trace.route, trace.route_reasons) == ("seeded", report.route_reasons)
        assert [(use.route, use.succeeded) for use in uses] == [("seeded", True)]

    async def test_near_is_not_enough_where_nothing_checks_the_answer(self, open_desk):
        async with open_desk() as desk:
            await taught(desk)
            report = await desk.bank.solve(
                "Convert the length of 3 feet to meters", SolveRequest(budget=QUICK)
            )
        assert report.route == "dynamic"
        assert "nothing checks the answer" in report.route_reasons[-1]

    async def test_a_task_that_is_far_from_every_skill_is_planned_from_scratch(self, open_desk):
        async with open_desk() as desk:
            await taught(desk)
            report = await desk.bank.solve(
                "Compute the sha256 hash of the text 'a'", SolveRequest(budget=QUICK)
            )
        assert report.route == "dynamic"
        assert "no skill is near the task (a score of 0.45 or more)" in report.route_reasons

    async def test_skills_that_fit_about_alike_are_left_alone(self, open_desk, node, document):
        async with open_desk() as desk:
            for name, tool in (("adds_up", "add"), ("adds_more", "multiply")):
                made = document(
                    node("n", f"calculator/{tool}", {"a": "$inputs.a", "b": "$inputs.b"}),
                    outputs={"sum": "$nodes.n.output#/result"},
                    inputs={"a": NUMBER, "b": NUMBER},
                )
                wanted = RepairRequest(
                    task="Bring 3 and 4 together",
                    inputs={"a": 3, "b": 4},
                    checks=Checks(("output.sum > `0`",)),
                    save=name,
                )
                saved = await desk.bank.repair(made, wanted)
                assert saved.skill_state == "active", saved.skill_reason
            found = await desk.bank.find_skills("Bring 8 and 9 nicely together", 5)
            report = await desk.bank.solve(
                "Bring 8 and 9 nicely together",
                SolveRequest(checks=Checks(("output.sum > `0`",)), budget=QUICK),
            )
        assert found.confusable == ("adds_more", "adds_up")
        assert report.route == "dynamic"
        assert report.route_reasons[-1].endswith("none is clearly meant: adds_more, adds_up")

    async def test_an_input_that_the_task_leaves_open_is_left_to_the_repair(self, open_desk):
        async with open_desk() as desk:
            await taught(desk)
            report = await desk.bank.solve(
                "Convert to meters", SolveRequest(checks=POSITIVE, budget=QUICK, route="seeded")
            )
        assert report.route == "seeded"
        assert report.route_reasons[-1].startswith("the task does not say its value")

    async def test_a_seed_that_is_asked_for_and_not_there_says_why(self, open_desk):
        async with open_desk() as desk:
            await desk.context.snapshot()
            report = await desk.bank.solve("Convert 3 feet to meters", SolveRequest(route="seeded"))
            assert desk.count() == 0
        assert (report.status, report.route) == ("failed", "seeded")
        assert "the seeded route is not open" in report.faults[0].message
        assert "no active skill is near the task" in report.faults[0].message

    async def test_a_skill_that_failed_twice_is_kept_from_both_routes_until_it_works(self, open_desk):
        never = Checks(("output.value < `0`",))
        task = "Convert 3 feet to meters"
        async with open_desk() as desk:
            name = await taught(desk)
            for _ in range(2):
                await desk.bank.solve(task, SolveRequest(checks=never, budget=Budget(candidates=2)))
            vetoed = await desk.bank.solve(task, SolveRequest(checks=POSITIVE, budget=QUICK))
            asked = await desk.bank.solve(task, SolveRequest(checks=POSITIVE, route="direct"))
            again = await desk.bank.solve(task, SolveRequest(checks=POSITIVE))
        assert vetoed.route == "dynamic"
        assert f"{name}: its last 2 uses failed (check_failed)" in vetoed.route_reasons
        assert (asked.status, asked.route) == ("verified", "direct")
        assert (again.status, again.route) == ("verified", "direct")


class TestWithAModel:
    ANSWER = json.dumps(
        {
            "nodes": [
                {
                    "tool": "convert_length",
                    "id": "n1",
                    "arguments": {"value": 3, "from_unit": "feet", "to_unit": "meters"},
                }
            ],
            "outputs": {"value": "$n1.value"},
        }
    )

    async def test_it_is_shown_signature_skeleton_and_guard_and_the_insights_of_the_family(self, open_desk):
        model = ScriptedBackend([self.ANSWER])
        async with open_desk() as desk:
            name = await taught(desk)
            await desk.bank.solve("Convert 9 feet to miles", SolveRequest(checks=POSITIVE, route="dynamic"))
            bank = Bank(replace(desk.context, models=with_backend(model)))
            report = await bank.solve(
                "Convert the length of 3 feet to meters", SolveRequest(checks=POSITIVE, budget=QUICK)
            )
        asked = model.requests[0].messages[-1].text
        assert (report.status, report.route, report.solved_by) == ("verified", "seeded", "plan")
        assert f"{name}(" in asked
        assert '"tool": "convert_length"' in asked
        assert "Not where units/convert_length is missing" in asked
        assert "begin with units/convert_length: 3 of 3 runs came out right so" in asked

    async def test_a_route_from_scratch_shows_it_none(self, open_desk):
        model = ScriptedBackend([self.ANSWER])
        async with open_desk() as desk:
            await taught(desk)
            bank = Bank(replace(desk.context, models=with_backend(model)))
            report = await bank.solve(
                "Convert the length of 3 feet to meters",
                SolveRequest(checks=POSITIVE, budget=QUICK, route="dynamic"),
            )
        assert report.route == "dynamic"
        assert "Plans that worked" not in model.requests[0].messages[-1].text

    async def test_views_stay_in_their_budget_of_tokens(self, open_desk):
        async with open_desk() as desk:
            skill = desk.store.head(await taught(desk))
        long = Seed(skill, tuple(f"Mind {number}: {'x' * 200}." for number in range(8)))
        views = seed_views([long] * 9, {})
        assert sum(map(estimate_tokens, views)) <= 1_800
        assert all(estimate_tokens(view) <= 550 for view in views)
        assert sum(map(estimate_tokens, seed_views([long] * 9, {}, context_tokens=2_400))) <= 600
        assert ["Plan" in view for view in seed_views([Seed(skill), Seed(skill)], {})] == [True, False]
