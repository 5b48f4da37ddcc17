"""What a model adds to exploring: calls it proposes, and tasks in other words; never more than that."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from catalog.result import CallFailure, CallSuccess, FailureKind
from catalog.tools import Tool, ToolId
from server.backends.backend import Completion
from server.exploration.observation import Observation, Probe, state_now, states
from server.exploration.options import ExplorationOptions
from server.exploration.proposing import propose_calls
from server.exploration.wording import reword, says_all
from tests.server.conftest import TEXT, schema

LOOK = Tool(ToolId("notes", "look"), description="Look.", input_schema=schema(text=TEXT))
SAVE = Tool(ToolId("notes", "save"), description="Save.", input_schema=schema(text=TEXT))
CHANGING = frozenset({"save"})


def answered(conversation: Any, text: str) -> tuple[Any, Any]:
    """Let a model give one answer; return what it was asked and what was made of the answer."""
    request = next(conversation)
    with pytest.raises(StopIteration) as ended:
        conversation.send(Completion((text,), ("end",), "m"))
    return request, ended.value.value


def seen(number: int, tool: Tool, text: str, *, session: int = 0, ok: bool = True) -> Observation:
    failure = CallFailure(FailureKind.TOOL_ERROR, "no", 0.0)
    outcome = CallSuccess({"ok": True}, [], 0.0) if ok else failure
    return Observation(number, session, Probe(tool, {"text": text}, "typical"), outcome)


def proposing(*calls: dict[str, Any]) -> str:
    return json.dumps({"calls": [*calls]})


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"tool": tool, "arguments": arguments}


def test_proposals_are_asked_for_at_high_temperature_and_what_was_made_is_named():
    asked, probes = answered(
        propose_calls([LOOK], [seen(0, LOOK, "a")], 7), proposing(call("look", text="b"))
    )
    assert (asked.temperature, asked.seed) == (1.0, 7)
    assert 'look {"text": "a"} -> ok' in asked.messages[0].text
    assert [(probe.kind, probe.arguments) for probe in probes] == [("proposed", {"text": "b"})]


@pytest.mark.parametrize(
    "answer",
    [
        "no JSON",
        "[]",
        '{"calls": "look"}',
        proposing(call("delete_all", text="x")),
        proposing(call("look", text=3)),
        proposing(call("look", other="x")),
        proposing({"tool": "look"}),
        proposing(call("look", text="a")),
        '{"calls": [null, 3, {"tool": null, "arguments": {}}]}',
    ],
    ids=[
        "text",
        "list",
        "no list",
        "unlisted tool",
        "type",
        "unknown",
        "no arguments",
        "visited",
        "no calls",
    ],
)
def test_what_no_tool_takes_or_was_made_is_not_proposed(answer: str):
    assert answered(propose_calls([LOOK], [seen(0, LOOK, "a")], 0), answer)[1] == []


def test_a_call_is_visited_in_the_state_it_was_made_in():
    looked, saved = seen(0, LOOK, "a"), seen(1, SAVE, "note")
    again = proposing(call("look", text="a"))
    for made, visited in (
        ([looked], True),
        ([looked, saved], False),
        ([looked, saved, seen(2, LOOK, "a")], True),
    ):
        asked, probes = answered(propose_calls([LOOK, SAVE], made, 0, CHANGING), again)
        assert bool(probes) is not visited
        assert ("look" in asked.messages[0].text.split("do not repeat:")[1].split("Propose")[0]) is visited


def test_states_are_told_by_the_changes_a_process_has_been_through():
    made = [
        seen(0, LOOK, "a"),
        seen(1, SAVE, "x"),
        seen(2, LOOK, "a"),
        seen(3, SAVE, "y", ok=False),
        seen(4, LOOK, "a"),
        seen(5, LOOK, "a", session=1),
        seen(6, SAVE, "x", session=1),
        seen(7, LOOK, "a", session=1),
    ]
    found = states(made, CHANGING)
    assert found[0] == found[1] == found[5] == found[6] == ""
    assert found[2] == found[3] == found[4] == found[7] != ""
    assert state_now(made, CHANGING, 1) == state_now(made[:4], CHANGING, 0) == found[2]
    assert state_now(made, CHANGING, 2) == ""


SaysAll = Callable[[str, dict[str, Any]], bool]


@pytest.mark.parametrize(
    ("text", "inputs", "says"),
    [
        ("Add 3 and 5.", {"a": 3, "b": 5}, True),
        ("Add 13 and 5.", {"a": 3, "b": 5}, False),
        ("Add 3.5 and 5.", {"a": 3, "b": 5}, False),
        ("Add -3 and 5.", {"a": 3, "b": 5}, False),
        ("Sort 3, 1 and 2", {"numbers": [3, 1, 2]}, True),
        ("Sort 3 and 1", {"numbers": [3, 1, 2]}, False),
        ('Add a row {"name": "ann"}', {"row": {"name": "ann"}}, True),
        ("Add a row with name ann", {"row": {"name": "ann"}}, False),
        ("Hash 'abc'", {"text": "abc"}, True),
        ("Hash 'abcd'", {"text": "abc"}, False),
        ("Round 2.50", {"x": 2.5}, False),
        ("Set it to true", {"x": True}, True),
        ("Greet Zoë!", {"who": "Zoë!"}, True),
    ],
)
def test_a_text_says_a_value_where_it_stands_by_itself(text: str, inputs: dict[str, Any], says: bool):
    assert says_all(text, inputs) is says


def test_a_rewording_is_taken_only_where_it_keeps_every_value():
    options = ExplorationOptions(style="brief", background="A clerk.")
    inputs = {"a": 3, "b": 5}
    answer = json.dumps({"task": " What do 3 and 5 make? "})
    asked, said = answered(reword("Add 3 and 5.", inputs, options), answer)
    assert said == "What do 3 and 5 make?"
    assert asked.temperature == 1.0
    assert "brief" in asked.messages[0].text
    assert "A clerk." in asked.messages[0].text
    for worse in ('{"task": "What do 3 and 4 make?"}', '{"task": 3}', "[]", "no JSON"):
        assert answered(reword("Add 3 and 5.", inputs, options), worse)[1] is None
