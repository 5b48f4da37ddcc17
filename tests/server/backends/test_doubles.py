"""Scripted and recorded backends: what they say, what they keep, and what they do at their end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from server.backends.backend import Completion, Message, Request, Usage
from server.backends.errors import BackendMisconfigured, BackendOverloaded, BackendUnavailable
from server.backends.recorded import RecordedBackend, request_digest
from server.backends.scripted import ScriptedBackend

pytestmark = pytest.mark.anyio


def ask(text: str, **more: object) -> Request:
    return Request((Message("user", text),), **more)


async def test_a_script_is_said_in_order_and_every_request_is_kept():
    whole = Completion(("third",), ("length",), "m", Usage(3, 1, 2))
    backend = ScriptedBackend(["first", ["second", "other"], whole, BackendOverloaded("later")])
    said = [await backend.complete(ask(str(n))) for n in range(3)]
    assert [answer.texts for answer in said] == [("first",), ("second", "other"), ("third",)]
    assert said[2] is whole
    with pytest.raises(BackendOverloaded, match="later"):
        await backend.complete(ask("3"))
    with pytest.raises(BackendUnavailable, match="the script has no further answer"):
        await backend.complete(ask("4"))
    assert [request.messages[0].text for request in backend.requests] == ["0", "1", "2", "3", "4"]


async def test_a_script_may_depend_on_the_request():
    backend = ScriptedBackend(lambda request: request.messages[-1].text.upper())
    assert (await backend.complete(ask("hello", n=2))).texts == ("HELLO", "HELLO")


async def test_a_recording_is_replayed_in_the_order_of_equal_requests(tmp_path: Path):
    tape = tmp_path / "tape.jsonl"
    recording = RecordedBackend(tape, ScriptedBackend(["one", "two", "else"], context_tokens=9))
    first = await recording.complete(ask("a", schema={"type": "object"}))
    await recording.complete(ask("a", schema={"type": "object"}, deadline_seconds=1.0))
    await recording.complete(ask("b"))
    assert recording.context_tokens == 9
    replay = RecordedBackend(tape)
    again = [await replay.complete(ask("a", schema={"type": "object"})) for _ in range(3)]
    assert again[0] == first
    assert [answer.text for answer in again] == ["one", "two", "two"]
    assert (await replay.complete(ask("b"))).text == "else"


async def test_what_was_never_recorded_is_an_error_that_shows_the_request(tmp_path: Path):
    tape = tmp_path / "tape.jsonl"
    await RecordedBackend(tape, ScriptedBackend(["one"])).complete(ask("a"))
    with pytest.raises(BackendMisconfigured, match=r"tape\.jsonl: no answer was recorded .*'something else'"):
        await RecordedBackend(tape).complete(ask("something else"))


def test_a_recording_that_is_not_there_or_broken_is_named(tmp_path: Path):
    with pytest.raises(BackendMisconfigured, match="there is no such recording"):
        RecordedBackend(tmp_path / "none.jsonl")
    broken = tmp_path / "broken.jsonl"
    broken.write_text(json.dumps({"digest": "x"}) + "\n")
    with pytest.raises(BackendMisconfigured, match=r"broken\.jsonl:1: no line of a recording"):
        RecordedBackend(broken)


def test_the_time_there_is_for_an_answer_is_no_part_of_what_is_asked():
    assert request_digest(ask("a")) == request_digest(ask("a", deadline_seconds=5.0))
    assert request_digest(ask("a")) != request_digest(ask("a", temperature=0.5))
