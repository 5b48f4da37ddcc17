"""Python functions as skills: judged by their tests, run in a sandbox, called as nodes and as tools."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from catalog.tools import ToolId
from server.backends.roles import with_backend
from server.backends.scripted import ScriptedBackend
from server.bank import Bank
from server.bank.errors import NotSaved, SkillNotCallable
from server.requests import SaveCodeRequest, SolveRequest
from server.sandbox.confinement import missing_features
from server.sandbox.sandbox import Sandbox, open_sandbox
from server.verification import Checks

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(bool(missing_features(system_calls=True)), reason="this machine cannot confine code"),
]

MEDIAN = (
    "def median(values: list[float]) -> float:\n"
    '    """Gives the middle of numbers."""\n'
    "    ordered = sorted(values)\n    half = len(ordered) // 2\n"
    "    if len(ordered) % 2:\n        return ordered[half]\n"
    "    return (ordered[half - 1] + ordered[half]) / 2\n"
)
MEDIAN_TESTS = (
    "assert median([3.5, 1.5, 2.5]) == 2.5\nassert median([4.0, 2.0]) == 3.0\nassert median([7.0]) == 7.0\n"
)


@asynccontextmanager
async def a_bank(open_desk, models=None, **options):
    async with open_sandbox() as sandbox, open_desk(**options) as desk:
        context = replace(desk.context, sandbox=sandbox)
        yield Bank(context if models is None else replace(context, models=models))


async def test_a_function_with_tests_becomes_an_active_tool(open_desk):
    async with a_bank(open_desk) as bank:
        saved = await bank.save_code(SaveCodeRequest("median", MEDIAN, MEDIAN_TESTS))
        assert saved.skill is not None
        assert (saved.skill.state, saved.reason) == ("active", "all gates passed; saved explicitly")
        ran = await bank.call_skill("median", {"values": [9, 1, 5]})
        shown = await bank.show_skill("median")
        again = await bank.test_skill("median")
        published = {one.tool_name for one in bank.published()}
    assert ran.outputs == {"result": 5}
    assert again.passed
    assert "median" in published
    code = shown.workflow.nodes[0].code
    assert (code.engine, code.entry) == ("monty", "median")
    assert code.engine_version.startswith("pydantic-monty ")
    assert shown.hints.read_only
    assert {"trivial_body", "replay", "varied_runs"} <= {check.name for check in saved.verdict.checks}


async def test_what_monty_lacks_is_verified_and_run_in_the_process_tier(open_desk):
    source = (
        "import statistics\ndef spread(values: list[float]) -> float:\n"
        '    """Gives the population deviation."""\n    return statistics.pstdev(values)\n'
    )
    tests = (
        "assert spread([1.0, 3.0]) == 1.0\nassert spread([2.0, 2.0]) == 0.0\nassert spread([0.0, 8.0]) == 4.0"
    )
    async with a_bank(open_desk) as bank:
        saved = await bank.save_code(SaveCodeRequest("spread", source, tests))
        ran = await bank.call_skill("spread", {"values": [0, 4]})
        shown = await bank.show_skill("spread")
    assert saved.skill.state == "active"
    assert ran.outputs == {"result": 2.0}
    assert shown.workflow.nodes[0].code.engine == "process"


@pytest.mark.parametrize(
    ("source", "tests", "failed"),
    [
        pytest.param(
            "def f(n: int) -> int:\n    return n * n + 1\n",
            "assert f(2) == 4\nassert f(3) == 9",
            "verified",
            id="wrong by its tests",
        ),
        pytest.param(
            "def f(n: int) -> int:\n    return 4\n", "assert f(2) == 4", "trivial_body", id="constant"
        ),
        pytest.param(
            "def f(n: int, m: int) -> int:\n    return n * n\n",
            "assert f(2, 1) == 4\nassert f(3, 1) == 9\nassert f(4, 2) == 16",
            "inputs_reach_outputs",
            id="an input that moves nothing",
        ),
        pytest.param(
            "def sort_them(items: list[int]) -> list[int]:\n"
            "    return sorted(items) if len(items) != 4 else [1, 2, 3, 4]\n",
            "assert sort_them([3, 1, 2]) == [1, 2, 3]\nassert sort_them([2, 1]) == [1, 2]",
            "varied_runs",
            id="breaks the relation of sorting",
        ),
    ],
)
async def test_a_function_that_is_wrong_is_no_tool(open_desk, source, tests, failed):
    async with a_bank(open_desk) as bank:
        saved = await bank.save_code(SaveCodeRequest("made", source, tests))
        with pytest.raises(SkillNotCallable):
            await bank.call_skill("made", {"n": 1})
    assert failed in {check.name for check in saved.verdict.checks if not check.passed}
    assert saved.skill.state == "proposed", "what a person wrote is not set aside by the system"


@pytest.mark.parametrize(
    ("source", "tests", "said"),
    [
        pytest.param(
            "import os\ndef f(n: int) -> int:\n    return n\n", "assert f(1) == 1", "import os", id="lint"
        ),
        pytest.param(
            "def f(n) -> int:\n    return n\n", "assert f(1) == 1", "annotate n", id="no annotation"
        ),
        pytest.param("def f(n: int) -> int:\n    return n\n", "x = 1", "there is no test", id="no tests"),
        pytest.param(
            "import sympy\ndef f(n: int) -> int:\n    return n\n",
            "assert f(1) == 1",
            "no engine can run it.*sympy",
            id="a module nobody has",
        ),
    ],
)
async def test_what_cannot_be_a_skill_says_why(open_desk, source, tests, said):
    async with a_bank(open_desk) as bank:
        with pytest.raises(NotSaved, match=said):
            await bank.save_code(SaveCodeRequest("made", source, tests))


async def test_a_workflow_calls_it_as_a_node(open_desk):
    async with a_bank(open_desk) as bank:
        await bank.save_code(SaveCodeRequest("median", MEDIAN, MEDIAN_TESTS))
        document = {
            "name": "middle_in_meters",
            "inputs": {"type": "object"},
            "nodes": [
                {
                    "id": "middle",
                    "skill": {"name": "median", "version": 1},
                    "arguments": {"values": [1, 2, 30]},
                },
                {
                    "id": "sum",
                    "tool": {"server": "calculator", "tool": "add"},
                    "arguments": {"a": "$nodes.middle.output#/result", "b": 1},
                },
            ],
            "outputs": {"sum": "$nodes.sum.output#/result"},
        }
        ran = await bank.run(document, {}, Checks(("output.sum == `3`",)))
    assert ran.status == "verified", ran.faults


async def test_it_calls_only_what_it_was_granted_through_the_policy(open_desk):
    source = (
        "def total(values: list[float]) -> float:\n"
        '    """Adds numbers by a tool."""\n    found = 0.0\n    for value in values:\n'
        "        found = plus(a=found, b=value)['result']\n    return found\n"
    )
    tests = (
        "assert total([1.0, 2.0]) == 3.0\nassert total([5.0]) == 5.0\nassert total([1.0, 1.0, 1.0]) == 3.0"
    )
    granted = {"plus": ToolId("calculator", "add")}
    async with a_bank(open_desk) as bank:
        saved = await bank.save_code(SaveCodeRequest("total", source, tests, tools=granted))
        ran = await bank.call_skill("total", {"values": [2, 3, 4]})
        shown = await bank.show_skill("total")
    assert saved.skill.state == "active", saved.reason
    assert ran.outputs == {"result": 9}
    assert [str(step.tool) for step in ran.trace if step.tool] == ["calculator/add"] * 3
    assert [str(pin.tool) for pin in shown.pins] == ["calculator/add"]


async def test_with_a_write_it_waits_for_a_person(open_desk):
    source = 'def keep(text: str) -> bool:\n    """Keeps a note."""\n    save(text=text)\n    return True\n'
    granted = {"save": ToolId("notes", "save_note")}
    async with a_bank(open_desk) as bank:
        saved = await bank.save_code(SaveCodeRequest("keep", source, "assert keep('a')", tools=granted))
        listed = await bank.call_tool(ToolId("notes", "list_notes"), {})
    assert saved.skill.state == "proposed"
    assert "may not run again" in saved.reason
    assert listed.structured == {"notes": []}, "no test of it has written"


class _Other:
    """An engine of another version."""

    name, version, is_there = "monty", "pydantic-monty 9.9.9", True

    def __init__(self, inner):
        self._inner = inner

    async def run(self, request):
        return await self._inner.run(request)


async def test_another_version_of_its_engine_makes_it_stale_until_it_is_verified_anew(open_desk):
    async with a_bank(open_desk) as bank:
        await bank.save_code(SaveCodeRequest("median", MEDIAN, MEDIAN_TESTS))
        engines = dict(bank.context.sandbox.engines)
        changed = Sandbox(engines | {"monty": _Other(engines["monty"])})
        later = Bank(replace(bank.context, sandbox=changed))
        with pytest.raises(SkillNotCallable, match=r"verified with pydantic-monty 1\..*, here is .* 9\.9\.9"):
            await later.call_skill("median", {"values": [1]})
        assert (await later.test_skill("median")).passed
        ran = await later.call_skill("median", {"values": [1, 2, 3]})
        shown = await later.show_skill("median")
    assert ran.outputs == {"result": 2}
    assert (shown.version, shown.workflow.nodes[0].code.engine_version) == (2, "pydantic-monty 9.9.9")


async def test_without_a_sandbox_nothing_runs(open_desk):
    async with a_bank(open_desk) as bank:
        await bank.save_code(SaveCodeRequest("median", MEDIAN, MEDIAN_TESTS))
        ran = await Bank(replace(bank.context, sandbox=None)).call_skill("median", {"values": [1]})
    assert ran.status == "failed"
    assert "there is no engine 'monty' here" in ran.faults[0].message


def _draft(source, **arguments):
    return json.dumps({"source": source, "entry": "f", "arguments": arguments})


async def test_a_task_that_no_graph_solves_is_solved_by_a_function_of_the_planner(open_desk):
    answers = iter(
        [
            _draft("def f(word: str) -> int:\n    return 0\n", word="radar"),
            _draft(
                "def f(word: str) -> int:\n    return len({word[i:j] for i in range(len(word))"
                " for j in range(i + 1, len(word) + 1) if word[i:j] == word[i:j][::-1]})\n",
                word="radar",
            ),
        ]
    )

    def say(request):
        return next(answers) if "Python function" in request.messages[0].text else "{}"

    backend = ScriptedBackend(say)
    async with a_bank(open_desk, models=with_backend(backend)) as bank:
        report = await bank.solve(
            "How many different palindromes are in radar?",
            SolveRequest(checks=Checks(("output.count == `5`",))),
        )
        skills = await bank.list_skills()
    asked = [r for r in backend.requests if "Python function" in r.messages[0].text]
    assert report.status == "verified", report.faults
    assert report.outputs == {"count": 5}
    assert any("wrote a function" in reason for reason in report.route_reasons)
    assert len(asked) == 2
    assert not any("`5`" in message.text for request in asked for message in request.messages)
    assert [(skill.state, skill.inputs) for skill in skills.skills] == [("proposed", ("word",))]
