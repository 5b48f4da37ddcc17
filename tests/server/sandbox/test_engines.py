"""Both tiers answer alike: values, errors, bounds, granted tools, and what this machine lacks."""

from __future__ import annotations

import anyio
import pytest

from server.sandbox.confinement import missing_features
from server.sandbox.engine import (
    CodeRequest,
    Limits,
    Raised,
    Returned,
    SandboxUnavailable,
    Stopped,
    ToolRefused,
)
from server.sandbox.monty_engine import MontyEngine
from server.sandbox.process_engine import ProcessEngine
from server.sandbox.sandbox import open_sandbox

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(bool(missing_features(system_calls=True)), reason="this machine cannot confine code"),
]
TIERS = pytest.mark.parametrize("tier", ["monty", "process"])


async def _run(tier, source, arguments=None, tools=None, limits=None):
    with anyio.fail_after(60):
        async with open_sandbox() as sandbox:
            request = CodeRequest(source, "f", arguments or {}, tools or {}, limits or Limits())
            return await sandbox.engines[tier].run(request)


@TIERS
async def test_a_value_keeps_its_json_type(tier):
    given = {"n": 1, "x": 1.5, "t": "é\n", "l": [None, True], "o": {"k": []}}
    outcome = await _run(tier, "def f(**given):\n    return given\n", given)
    assert isinstance(outcome, Returned)
    assert outcome.value == given


@TIERS
@pytest.mark.parametrize(
    ("body", "kind"),
    [
        pytest.param("raise ValueError('no good')", "ValueError", id="its own error"),
        pytest.param("return missing_name", "NameError", id="a name that is not there"),
        pytest.param("return {1, 2}", "TypeError", id="a set is no JSON"),
        pytest.param("return float('nan')", "ValueError", id="NaN is no JSON"),
    ],
)
async def test_what_goes_wrong_is_an_outcome(tier, body, kind):
    outcome = await _run(tier, f"def f():\n    {body}\n")
    assert isinstance(outcome, Raised)
    assert (outcome.kind, outcome.is_unsupported) == (kind, False)


@TIERS
@pytest.mark.parametrize(
    ("body", "bound"),
    [
        pytest.param("while True: pass", "seconds", id="time"),
        pytest.param("return len('a' * (10 ** 9))", "memory", id="memory"),
        pytest.param("return 'a' * 100_000", "output", id="output"),
    ],
)
async def test_a_bound_stops_it_and_says_which(tier, body, bound):
    limits = Limits(seconds=1.0, output_bytes=10_000)
    outcome = await _run(tier, f"def f():\n    {body}\n", limits=limits)
    assert isinstance(outcome, Stopped)
    assert outcome.bound == bound


@TIERS
async def test_it_calls_only_the_tools_it_was_granted(tier):
    asked = []

    async def convert(arguments):
        asked.append(arguments)
        if arguments["value"] < 0:
            raise ToolRefused("below zero")
        return {"doubled": arguments["value"] * 2}

    source = (
        "def f(values):\n    done = []\n    for value in values:\n        try:\n"
        "            done.append(convert(value=value)['doubled'])\n"
        "        except RuntimeError as error:\n            done.append(str(error))\n    return done\n"
    )
    outcome = await _run(tier, source, {"values": [1, -1, 3]}, {"convert": convert})
    assert isinstance(outcome, Returned)
    assert outcome.value == [2, "below zero", 6]
    assert asked == [{"value": 1}, {"value": -1}, {"value": 3}]
    outcome = await _run(tier, "def f():\n    return other(value=1)\n", {}, {"convert": convert})
    assert isinstance(outcome, Raised)
    assert outcome.kind == "NameError"


@TIERS
async def test_it_may_not_call_tools_without_end(tier):
    async def tool(arguments):
        return arguments

    source = "def f():\n    while True:\n        tool(n=1)\n"
    outcome = await _run(tier, source, {}, {"tool": tool}, Limits(seconds=20.0, calls=5))
    assert isinstance(outcome, Stopped)
    assert outcome.bound == "output"


@TIERS
async def test_chance_and_order_are_the_same_every_time(tier):
    source = (
        "import random\ndef f():\n"
        "    return [random.random(), random.random(), [w for w in {'a', 'b', 'c', 'd'}]]\n"
    )
    first, second = await _run(tier, source), await _run(tier, source)
    assert isinstance(first, Returned)
    assert isinstance(second, Returned)
    assert first.value == second.value


async def test_the_clock_of_monty_stands_still():
    outcome = await _run("monty", "import datetime\ndef f():\n    return str(datetime.datetime.now())\n")
    assert isinstance(outcome, Returned)
    assert outcome.value == "2000-01-01 00:00:00"


@TIERS
async def test_names_of_the_code_cannot_change_how_its_value_is_given(tier):
    source = (
        "class json:\n    def dumps(value):\n        return value\n"
        "    def loads(text):\n        return text\n"
        "def skillbank_call(name, text):\n    return '1'\ndef f():\n    return 7\n"
    )
    outcome = await _run(tier, source)
    assert isinstance(outcome, Returned)
    assert outcome.value == 7


async def test_what_monty_lacks_runs_in_the_process_tier():
    source = "import heapq\ndef f(values):\n    return heapq.nlargest(2, values)\n"
    with anyio.fail_after(60):
        async with open_sandbox() as sandbox:
            tried = await sandbox.first_able(CodeRequest(source, "f", {"values": [3, 1, 2]}))
    assert tried.engine.name == "process"
    assert isinstance(tried.outcome, Returned)
    assert tried.outcome.value == [3, 2]


@pytest.mark.parametrize("engine", [MontyEngine, ProcessEngine], ids=["monty", "process"])
async def test_a_machine_that_cannot_confine_it_refuses(engine):
    lacking = engine(missing=["Landlock (Linux 5.13 or later)"])
    with pytest.raises(SandboxUnavailable, match="it needs Landlock"):
        await lacking.run(CodeRequest("def f():\n    return 1\n", "f", {}))


async def test_a_tier_that_cannot_be_confined_is_no_reason_to_take_another():
    async with open_sandbox() as sandbox:
        first = dict(sandbox.engines) | {"monty": MontyEngine(missing=["Landlock"])}
        with pytest.raises(SandboxUnavailable):
            await type(sandbox)(first).first_able(CodeRequest("def f():\n    return 1\n", "f", {}))


async def test_cancelling_ends_the_process():
    with anyio.move_on_after(1.5) as scope:
        await ProcessEngine().run(
            CodeRequest("def f():\n    while True: pass\n", "f", {}, limits=Limits(seconds=60))
        )
    assert scope.cancelled_caught
