"""The direct route: the second like task runs the skill, and falls back without doing harm."""

from __future__ import annotations

import hashlib

import anyio
import pytest

from catalog.effects import Effect
from catalog.testing import ScriptedServer, ScriptedTool
from server.execution.consent import GrantAll
from server.requests import Budget, RepairRequest, SolveRequest
from server.verification import Checks

pytestmark = pytest.mark.anyio

DIGEST = Checks(("length(output.digest) == `64`",))


def task(text):
    return f"Compute the sha256 hash of the text '{text}'"


async def taught(desk):
    """Solve two like tasks, so that their skill is active."""
    for text in ("hello", "other words"):
        report = await desk.bank.solve(task(text), SolveRequest(checks=DIGEST))
    assert report.skill_state == "active", report.skill_reason
    return report.skill


async def test_a_like_task_runs_the_skill_and_plans_nothing(open_desk):
    async with open_desk() as desk:
        name = await taught(desk)
        before = desk.count()
        report = await desk.bank.solve(task("third"), SolveRequest())
        assert desk.count() == before + 1
        counts = desk.store.use_counts(name)
    assert (report.status, report.route, report.candidates) == ("succeeded", "direct", 0)
    assert (report.skill, report.skill_state) == (name, "active")
    assert report.outputs == {"digest": hashlib.sha256(b"third").hexdigest()}
    assert f"skill {name}@1 is active" in report.route_reasons
    assert (counts.uses, counts.successes) == (1, 1)


async def test_units_and_numbers_are_bound_by_their_place(open_desk):
    checks = Checks(("output.value > `0`",))
    async with open_desk() as desk:
        for said in ("Convert 5 kilometers to meters", "Convert 7 miles to feet"):
            learned = await desk.bank.solve(said, SolveRequest(checks=checks))
        report = await desk.bank.solve("Convert 3 feet to meters", SolveRequest())
    assert learned.skill_state == "active", learned.skill_reason
    assert (report.route, report.status) == ("direct", "succeeded")
    assert report.outputs["value"] == pytest.approx(0.9144)


async def test_a_list_that_a_task_says_is_one_input_and_the_next_task_may_say_more_or_fewer(open_desk):
    checks = Checks(("length(output.digests) > `0`", "length(output.digests[0]) == `64`"))
    async with open_desk() as desk:
        for said in ("'a', 'b' and 'c'", "'d' and 'e'"):
            task = f"Compute the sha256 digests of the texts {said}"
            learned = await desk.bank.solve(task, SolveRequest(checks=checks))
        skill = desk.store.head(learned.skill)
        few = await desk.bank.solve("Compute the sha256 digests of the texts 'x', 'y'", SolveRequest())
        many = "'p', 'q', 'r', and 's'"
        more = await desk.bank.solve(f"Compute the sha256 digests of the texts {many}", SolveRequest())
    assert learned.skill_state == "active", learned.skill_reason
    assert skill.signature.input_schema["properties"]["texts"]["type"] == "array"
    assert [node.for_each for node in skill.workflow.nodes] == ["$inputs.texts"]
    assert (few.route, more.route) == ("direct", "direct"), (few.route_reasons, more.route_reasons)
    assert few.outputs == {"digests": [hashlib.sha256(text).hexdigest() for text in (b"x", b"y")]}
    assert len(more.outputs["digests"]) == 4


async def test_a_list_that_is_given_by_name_is_gone_through(open_desk):
    checks = Checks(("length(output.digests[0]) == `64`",))
    asked = SolveRequest(checks=checks, inputs={"texts": ["a", "b"]})
    async with open_desk() as desk:
        report = await desk.bank.solve("Compute the sha256 digests of the texts", asked)
    assert report.status == "verified", report.faults
    assert report.outputs == {"digests": [hashlib.sha256(text).hexdigest() for text in (b"a", b"b")]}


@pytest.mark.parametrize("route", ["dynamic", "seeded"])
async def test_another_route_that_was_asked_for_plans(open_desk, route):
    async with open_desk() as desk:
        await taught(desk)
        report = await desk.bank.solve(task("third"), SolveRequest(checks=DIGEST, route=route))
        trace = desk.store.trace(report.trace_id)
    assert (report.status, report.route, report.route_reasons[0]) == ("verified", route, "asked for")
    assert (trace.route, trace.route_reasons) == (route, report.route_reasons)


async def test_the_direct_route_that_was_asked_for_never_plans(open_desk):
    async with open_desk() as desk:
        await desk.context.snapshot()
        report = await desk.bank.solve(task("a"), SolveRequest(route="direct"))
        assert desk.count() == 0
    assert (report.status, report.route) == ("failed", "direct")
    assert "no active skill" in report.faults[0].message


async def test_an_answer_that_fails_the_checks_falls_back_to_a_plan_and_counts_against_the_skill(open_desk):
    async with open_desk() as desk:
        name = await taught(desk)
        before = desk.count()
        report = await desk.bank.solve(
            task("third"),
            SolveRequest(checks=Checks(("output.nothing == 'x'",)), budget=Budget(candidates=4)),
        )
        counts = desk.store.use_counts(name)
        assert desk.count("sha256") <= before + 1  # what the skill had read is remembered
    assert (report.status, report.route) == ("failed", "dynamic")
    assert any("did not come out right" in reason for reason in report.route_reasons)
    assert (counts.uses, counts.successes) == (1, 0)


async def test_zero_runs_no_skill_either(open_desk):
    async with open_desk() as desk:
        await taught(desk)
        before = desk.count()
        report = await desk.bank.solve(task("third"), SolveRequest(budget=Budget(seconds=0)))
        assert desk.count() == before
    assert (report.status, report.budget_spent) == ("unverified", "seconds")


async def test_a_skill_whose_tools_changed_is_marked_and_the_task_is_planned(open_desk):
    async with open_desk() as desk:
        name = await taught(desk)
        changed = {"type": "object", "properties": {"text": {"type": "string"}, "salt": {"type": "string"}}}
        await desk.change(
            "hashes", [ScriptedTool("sha256", [{"digest": "0" * 64}], changed, description="Hash a text.")]
        )
        waiting = await desk.bank.solve(task("third"), SolveRequest(checks=DIGEST))
        await desk.bank.recheck_effects("hashes", "sha256")
        report = await desk.bank.solve(task("third"), SolveRequest(checks=DIGEST))
        states = [(skill.version, skill.state) for skill in desk.store.versions(name)]
    assert waiting.status == "needs_approval"
    assert (report.status, report.route) == ("verified", "dynamic")
    assert states[0] == (1, "stale")


async def active(desk, saving):
    """Keep a skill that saves a note, and let a person approve it."""
    wanted = RepairRequest(
        task="Save the note 'a'", inputs={"text": "a"}, checks=Checks(("output.count == `1`",)), save="saves"
    )
    await desk.bank.repair(saving, wanted, consent=GrantAll())
    desk.store.move("saves", 1, "active", reason="approved", by="person", at=1.0)


class TestAWrite:
    @pytest.fixture
    def saving(self, node, document):
        return document(
            node("save", "notes/save_note", {"text": "$inputs.text"}),
            outputs={"count": "$nodes.save.output#/count"},
            inputs={"text": {"type": "string"}},
        )

    async def test_in_a_skill_is_not_repeated_by_the_plan_that_follows(self, open_desk, saving):
        async with open_desk() as desk:
            await active(desk, saving)
            report = await desk.bank.solve(
                "Save the note 'b'",
                SolveRequest(checks=Checks(("output.result == 'never'",)), budget=Budget(candidates=20)),
                consent=GrantAll(),
            )
            assert desk.count("save_note") == 2
        assert (report.status, report.route) == ("failed", "dynamic")

    async def test_that_is_allowed_runs_directly(self, open_desk, saving):
        async with open_desk() as desk:
            await active(desk, saving)
            report = await desk.bank.solve("Save the note 'b'", SolveRequest(allow=("notes/save_note",)))
        assert (report.status, report.route, report.outputs) == ("succeeded", "direct", {"count": 2})


async def test_the_world_is_not_held_against_a_skill_that_was_run_directly(open_desk):
    is_slow = False

    async def look(_):
        if is_slow:
            await anyio.sleep_forever()
        return {"seen": 1}

    output = {"type": "object", "properties": {"seen": {"type": "integer"}}, "required": ["seen"]}
    tool = ScriptedTool("look", look, output_schema=output, description="Look at the sky.")
    checks = Checks(("output.seen == `1`",))
    async with open_desk(
        {"s": ScriptedServer([tool])}, effects={"s": {"*": Effect.PURE}}, timeout_seconds=0.3
    ) as desk:
        learned = await desk.bank.solve("Look at the sky", SolveRequest(checks=checks, save="looks"))
        assert learned.skill_state == "active", learned.skill_reason
        is_slow = True
        report = await desk.bank.solve("Look at the sky", SolveRequest(checks=checks))
        counts = desk.store.use_counts("looks")
    assert (report.status, report.route) == ("unverified", "dynamic")
    assert (counts.uses, counts.world_faults) == (1, 1)


@pytest.mark.parametrize(
    ("answer", "status"), [(False, "failed"), (None, "needs_approval")], ids=["refused", "nobody-there"]
)
async def test_what_a_person_decides_is_not_planned_around(open_desk, node, document, answer, status):
    asked = []

    class Person:
        async def ask(self, question):
            asked.append(question)
            return answer

    saving = document(
        node("save", "notes/save_note", {"text": "$inputs.text"}),
        outputs={"count": "$nodes.save.output#/count"},
        inputs={"text": {"type": "string"}},
    )
    async with open_desk() as desk:
        await active(desk, saving)
        report = await desk.bank.solve("Save the note 'b'", SolveRequest(), consent=Person())
        assert desk.count("save_note") == 1
        assert desk.store.use_counts("saves").judged == 0
    assert (report.status, report.route, report.skill, len(asked)) == (status, "direct", "saves", 1)
    assert report.not_repeated
