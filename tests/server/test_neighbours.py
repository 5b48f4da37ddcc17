"""Tasks that read alike but for words: each family gets a skill of its own, and none answers for another."""

from __future__ import annotations

import hashlib
import itertools
import json
from functools import partial

import pytest

from catalog.effects import Effect
from catalog.testing import Reply, ScriptedServer, ScriptedTool
from server.bank.curation.observing import is_of_family
from server.requests import SolveRequest
from server.verification import Checks

pytestmark = pytest.mark.anyio

RATES = {
    "length": {"meters": 1.0, "kilometers": 1000.0, "miles": 1609.344},
    "mass": {"grams": 1.0, "kilograms": 1000.0, "pounds": 453.59237},
}
COUNTED = ("divisors", "partitions")


def convert(n):
    rates = RATES[n["kind"]]
    if strange := [unit for unit in (n["from_unit"], n["to_unit"]) if unit not in rates]:
        return Reply.text(f"Unknown unit in {n['kind']}: {strange[0]}", is_error=True)
    return {"value": n["value"] * rates[n["from_unit"]] / rates[n["to_unit"]]}


def analyze(n):
    if n["operation"] == "divisors":
        return {"result": sum(n["number"] % k == 0 for k in range(1, n["number"] + 1))}
    return Reply.text(f"{n['operation']} needs more than a number", is_error=True)


def sha256(text):
    return hashlib.sha256(text.encode()).hexdigest()


def md5(text):
    return hashlib.md5(text.encode()).hexdigest()


def tools():
    text, number = {"type": "string"}, {"type": "number"}

    def schema(**properties):
        return {"type": "object", "properties": properties, "required": [*properties]}

    hashing = [
        ScriptedTool(
            name,
            lambda n, made=made: {"digest": made(n["text"])},
            schema(text=text),
            schema(digest=text),
            description=f"Compute the {name} hash of a text.",
        )
        for name, made in (("sha256", sha256), ("md5", md5))
    ]
    kind = {"type": "string", "enum": [*RATES]}
    operation = {"type": "string", "enum": [*COUNTED]}
    return [
        *hashing,
        ScriptedTool(
            "convert",
            convert,
            schema(value=number, kind=kind, from_unit=text, to_unit=text),
            schema(value=number),
            description="Convert a value from one unit to another unit of a kind.",
        ),
        ScriptedTool(
            "analyze",
            analyze,
            schema(number={"type": "integer", "minimum": 1}, operation=operation),
            schema(result=number),
            description="Analyze a number: count its divisors or partitions.",
        ),
    ]


@pytest.fixture
def open_units(open_desk):
    seconds = itertools.count(1_700_000_000)
    servers = {"units": ScriptedServer(tools)}
    return partial(
        open_desk,
        servers,
        effects={"units": {"*": Effect.PURE}},
        now=lambda: float(next(seconds)),
    )


async def solved(desk, task, right):
    told = json.dumps(right)
    check = (
        f"approx(output.*|[0], `{told}`, `0.001`)"
        if isinstance(right, float | int)
        else f"output.*|[0] == `{told}`"
    )
    report = await desk.bank.solve(task, SolveRequest(checks=Checks((check,))))
    assert report.status == "verified", (task, report.faults)
    return report


async def test_a_constant_that_no_task_says_makes_two_skills_and_the_words_choose_between_them(open_units):
    async with open_units() as desk:
        for value in (5, 8):
            await solved(desk, f"Convert {value} miles to meters", value * 1609.344)
        for value in (3, 4):
            learned = await solved(desk, f"Convert {value} pounds to grams", value * 453.59237)
        far = await solved(desk, "Convert 7 miles to meters", 7 * 1609.344)
        heavy = await solved(desk, "Convert 7 pounds to grams", 7 * 453.59237)
        kinds = {
            head.name: head.workflow.nodes[0].arguments["kind"]
            for head in desk.store.heads()
            if head.state == "active"
        }
    assert learned.skill_state == "active", learned.skill_reason
    assert (far.route, heavy.route, far.calls, heavy.calls) == ("direct", "direct", 1, 1)
    assert (kinds[far.skill], kinds[heavy.skill]) == ("length", "mass")


async def test_a_skill_that_a_tool_refused_for_some_words_is_not_run_with_them_again(open_units):
    async with open_units() as desk:
        for value in (5, 8):
            taught = await solved(desk, f"Convert {value} miles to meters", value * 1609.344)
        first = await solved(desk, "Convert 3 pounds to grams", 3 * 453.59237)
        second = await solved(desk, "Convert 4 pounds to grams", 4 * 453.59237)
        uses = [(use.route, use.succeeded) for use in desk.store.uses(taught.skill, 9)]
        trials = [trial.outcome for trial in desk.store.episodes(99, taught.skill) if trial.arm == "guided"]
    assert trials == []
    assert any("did not come out right" in reason for reason in first.route_reasons)
    assert f"{taught.skill} was wrong with these words" in second.route_reasons
    assert uses.count(("direct", False)) == 1
    assert ("direct", True) not in uses


async def test_an_input_that_no_run_could_vary_is_a_constant_once_two_runs_share_its_value(open_units):
    async with open_units() as desk:
        first = await solved(desk, "How many divisors has 12?", 6)
        again = await solved(desk, "How many divisors has 12?", 6)
        second = await solved(desk, "How many divisors has 28?", 6)
        third = await solved(desk, "How many divisors has 13?", 2)
        skill = desk.store.head(second.skill)
        other = is_of_family(skill, "How many partitions has 13?")
    assert (first.skill_state, again.skill_state) == ("proposed", "proposed")
    assert "no successful run on another value of operation" in first.skill_reason
    assert (second.skill_state, skill.version, third.route) == ("active", 2, "direct")
    assert skill.workflow.nodes[0].arguments["operation"] == "divisors"
    assert [test.kind for test in skill.tests][:2] == ["original", "held_out"]
    assert list(skill.signature.input_schema["properties"]) == ["number"]
    assert not other


async def test_a_restricted_skill_stays_so_when_its_workflow_comes_out_right_once_more(open_units):
    async with open_units() as desk:
        for value in (5, 8):
            taught = await solved(desk, f"Convert {value} miles to meters", value * 1609.344)
        desk.store.move(taught.skill, 1, "context_only", reason="harmful", by="system", at=1_700_000_999.0)
        report = await solved(desk, "Convert 9 miles to meters", 9 * 1609.344)
        head = desk.store.head(taught.skill)
    assert (head.version, head.state) == (1, "context_only")
    assert report.skill_state == "context_only"


async def test_a_task_of_another_family_is_no_trial_of_a_skill_that_a_plan_starts_from(open_units):
    async with open_units() as desk:
        for text in ("one", "two words"):
            taught = await solved(desk, f"Compute the sha256 hash of the text '{text}'", sha256(text))
        other = await solved(desk, "Compute the md5 hash of the text 'three'", md5("three"))
        trials = [episode for episode in desk.store.episodes(99, taught.skill) if episode.arm is not None]
    assert other.route == "seeded"
    assert any(f"{taught.skill}@1 is near it" in reason for reason in other.route_reasons)
    assert trials == []
