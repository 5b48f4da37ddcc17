"""Skills that do the same by other workflows: one proves the other, or says which it equals."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from catalog.effects import Effect
from catalog.testing import ScriptedServer, ScriptedTool
from server.bank.admission.learning import learn
from server.bank.episode.repairing import repair_document
from server.requests import RepairRequest
from server.verification import Checks
from skills_store.sqlite import open_sqlite_store

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parents[2]
NUMBERS = {"a": {"type": "number"}, "b": {"type": "number"}}


@pytest.fixture
def computing(node, document):
    """A document of one call of the calculator, by default a + b."""

    def made(tool="add", a="$inputs.a", b="$inputs.b", output="result"):
        return document(
            node("n", f"calculator/{tool}", {"a": a, "b": b}),
            outputs={output: "$nodes.n.output#/result"},
            inputs=NUMBERS,
        )

    return made


def two_ways():
    """Return a calculator that adds with two tools."""
    schema = {"type": "object", "properties": NUMBERS, "required": ["a", "b"]}

    def plus(arguments):
        return {"result": arguments["a"] + arguments["b"]}

    return {"calculator": ScriptedServer([ScriptedTool(name, plus, schema) for name in ("add", "plus")])}


async def saved(desk, document, name):
    return await desk.bank.repair(document, RepairRequest(inputs={"a": 3, "b": 2}, save=name))


def said(report):
    return next(check.detail for check in report.verdict.checks if check.name == "behaviour")


async def test_what_a_person_saves_under_a_name_of_its_own_is_kept_and_says_what_it_equals(
    open_desk, computing
):
    async with open_desk() as desk:
        await saved(desk, computing(), "adds")
        report = await saved(desk, computing(a="$inputs.b", b="$inputs.a"), "sums")
        names = [(skill.name, skill.state) for skill in desk.store.heads()]
    assert names == [("adds", "active"), ("sums", "active")]
    assert said(report) == "it does what adds does"
    assert report.skill_reason == "all gates passed; saved explicitly; it does what adds does"


@pytest.mark.parametrize(
    "other",
    [
        pytest.param({"tool": "multiply"}, id="other-answers"),
        pytest.param({"a": "$inputs.b", "b": "$inputs.a", "output": "total"}, id="other-outputs"),
    ],
)
async def test_what_gives_or_is_called_something_else_is_no_twin(open_desk, computing, other):
    async with open_desk() as desk:
        await saved(desk, computing(), "adds")
        report = await saved(desk, computing(**other), "other")
    assert report.skill_state == "active"
    assert said(report) == "no other skill is known to do the same"


async def test_what_changes_something_is_never_run_to_compare(open_desk, computing):
    effects = {"calculator": {"plus": Effect.PURE, "add": Effect.PURE}}
    async with open_desk(two_ways(), effects=effects) as desk:
        await saved(desk, computing(), "adds")
    effects = {"calculator": {"plus": Effect.PURE, "add": Effect.WRITE}}
    async with open_desk(two_ways(), effects=effects) as desk:
        report = await saved(desk, computing("plus"), "sums")
        assert desk.count("add") == 0
    assert said(report) == "no other skill is known to do the same"


async def test_a_run_of_another_workflow_proves_the_proposal_that_does_the_same(open_desk, computing):
    async with open_desk(two_ways(), effects={"calculator": {"*": Effect.PURE}}) as desk:
        first = await learned(desk, computing(), 3, 2)
        second = await learned(desk, computing("plus"), 8, 5)
        third = await learned(desk, computing("plus"), 9, 1)
        (kept,) = desk.store.heads()
    assert (first.skill.state, second.skill.state) == ("proposed", "active")
    assert f"{kept.name} does the same and is proved by it" in second.reason
    assert "2 distinct verified runs" in second.reason
    assert third.reason == f"{kept.name} does the same already and is active"
    assert kept.tests[0].inputs == {"a": 3, "b": 2}


async def test_a_run_whose_inputs_are_named_otherwise_proves_it_too(open_desk, computing, node, document):
    call = {"a": "$inputs.q", "b": "$inputs.p"}
    numbers = {"p": {"type": "number"}, "q": {"type": "number"}}
    outputs = {"result": "$nodes.other.output#/result"}
    otherwise = document(node("other", "calculator/plus", call), outputs=outputs, inputs=numbers)
    async with open_desk(two_ways(), effects={"calculator": {"*": Effect.PURE}}) as desk:
        first = await learned(desk, computing(), 3, 2)
        second = await learned(desk, otherwise, 8, 5, names=("p", "q"))
        third = await learned(desk, otherwise, 9, 1, names=("p", "q"))
        (kept,) = desk.store.heads()
    assert (first.skill.state, second.skill.state) == ("proposed", "active")
    assert f"{kept.name} does the same and is proved by it" in second.reason
    assert third.reason == f"{kept.name} does the same already and is active"
    assert set(kept.tests[0].inputs) == {"a", "b"}


async def learned(desk, document, a, b, names=("a", "b")):
    """Return what the bank learns by itself from one verified run."""
    checks = Checks((f"output.result == `{a + b}`",))
    inputs = dict(zip(names, (a, b), strict=True))
    request = RepairRequest(task=f"compute {a} and {b}", inputs=inputs, checks=checks)
    repaired = await repair_document(document, request, desk.context)
    return await learn(repaired.run, desk.context, name=None)


SCENARIO = {
    "tools": [
        {
            "name": "say",
            "behaviour": "echo",
            "input_schema": {
                "type": "object",
                "properties": {"text": {"type": "string"}},
                "required": ["text"],
            },
        }
    ]
}


async def test_two_processes_that_admit_the_same_skill_end_with_one(tmp_path, node, document):
    saying = document(
        node("n", "parrot/say", {"text": "$inputs.text"}),
        outputs={"text": "$nodes.n.output#/text"},
        inputs={"text": {"type": "string"}},
    )
    scenario, config, workflow = (tmp_path / f"{name}.json" for name in ("scenario", "config", "workflow"))
    scenario.write_text(json.dumps(SCENARIO))
    workflow.write_text(json.dumps(saying))
    server = {"command": sys.executable, "args": ["-m", "catalog.testing", str(scenario)], "cwd": str(ROOT)}
    own = {"effects": {"parrot": {"*": "pure"}}}
    config.write_text(json.dumps({"mcpServers": {"parrot": server}, "skillbank": own}))
    line = [sys.executable, "-m", "server.cli", "repair", str(workflow), "--json"]
    line += ["--inputs", json.dumps({"text": "good day"}), "--config", str(config)]
    line += ["--store", str(tmp_path / "store.db")]
    both = [
        subprocess.Popen([*line, "--save", name], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for name in ("one", "two")
    ]
    answers = [process.communicate(timeout=120) for process in both]
    assert [process.returncode for process in both] == [0, 0], answers
    store = open_sqlite_store(tmp_path / "store.db")
    heads, versions = store.heads(), [len(store.versions(name)) for name in ("one", "two")]
    store.close()
    assert (len(heads), sorted(versions)) == (1, [0, 1])
    assert {json.loads(output)["skill"] for output, _ in answers} == {heads[0].name}
    assert heads[0].state == "active"
