"""How an explored task is said: as a person would ask, with every value in it."""

from __future__ import annotations

from typing import Any

import pytest

from catalog.result import CallSuccess
from catalog.tools import Tool, ToolId
from server.exploration.chains import Chain
from server.exploration.distilling import distil
from server.exploration.duplicates import is_near_duplicate, shape_of
from server.exploration.observation import Observation, Origin, Probe
from server.exploration.wording import says_all, word_task

NUMBER: Any = {"type": "number"}
TEXT: Any = {"type": "string"}


def call(number: int, name: str, about: str, arguments: Any, output: Any, **origins: Origin) -> Observation:
    properties: Any = {key: TEXT if isinstance(value, str) else NUMBER for key, value in arguments.items()}
    tool = Tool(ToolId("desk", name), {"type": "object", "properties": properties}, description=about)
    probe = Probe(tool, arguments, "chained" if origins else "typical", "", origins)
    return Observation(number, 1, probe, CallSuccess(structured=output, content=[], seconds=0.0))


def said(*steps: Observation) -> str:
    draft = distil(Chain(steps))
    assert draft is not None
    text = word_task(draft, draft.inputs)
    assert says_all(text, draft.inputs)
    return text


@pytest.mark.parametrize(
    ("name", "about", "arguments", "text"),
    [
        ("add", "Add two numbers.", {"a": 12, "b": 5}, "Add 12 and 5. Give me the total."),
        ("mul", "Multiplies two numbers", {"a": 12, "b": 5}, "Multiply 12 by 5. Give me the total."),
        (
            "md5",
            "Hashes the given text with MD5.",
            {"text": "hi"},
            "Hash the text 'hi' with MD5. Give me the total.",
        ),
        (
            "email",
            "Validate an email address.",
            {"email": "ann@example.org"},
            "Validate an email address with email 'ann@example.org'. Give me the total.",
        ),
        (
            "scale",
            "This tool scales a value by a factor",
            {"value": 4.5, "factor": 3},
            "Scale the value 4.5 by the factor 3. Give me the total.",
        ),
        ("getRate", "", {"base_currency": "EUR"}, "Get rate with base currency 'EUR'. Give me the total."),
    ],
    ids=["two numbers", "third person", "in its place", "noun before a noun", "two in place", "no words"],
)
def test_a_call_is_asked_for_in_the_words_of_its_tool(name: str, about: str, arguments: Any, text: str):
    assert said(call(0, name, about, arguments, {"total": 77.5})) == text


def test_a_chain_says_what_is_read_from_what():
    first = call(0, "add", "Add two numbers.", {"a": 12, "b": 5}, {"total": 17})
    second = call(
        1,
        "md5",
        "Hash a text.",
        {"text": "17", "salt": "x"},
        {"digest": "70efdf2e"},
        text=Origin(0, "/total"),
    )
    assert said(first, second) == (
        "Add 12 and 5, then hash a text with text from the total and salt 'x'. Give me the digest."
    )


def test_only_what_is_alike_in_words_and_in_structure_is_a_near_duplicate():
    first = call(0, "add", "Add two numbers.", {"a": 12, "b": 5}, {"total": 17})
    chained = call(1, "add", "Add two numbers.", {"a": 17, "b": 5}, {"total": 22}, a=Origin(0, "/total"))
    otherwise = call(1, "add", "Add two numbers.", {"a": 5, "b": 17}, {"total": 22}, b=Origin(0, "/total"))
    unjoined = call(1, "add", "Add two numbers.", {"a": 30, "b": 9}, {"total": 39})

    def shape(*steps: Observation) -> Any:
        draft = distil(Chain(steps))
        assert draft is not None
        return shape_of(word_task(draft, draft.inputs), draft.workflow)

    one = shape(first, chained)
    again = call(0, "add", "Add two numbers.", {"a": 90, "b": 1}, {"total": 91})
    follows = call(1, "add", "Add two numbers.", {"a": 91, "b": 2}, {"total": 93}, a=Origin(0, "/total"))
    assert is_near_duplicate(shape(again, follows), [one])
    assert is_near_duplicate(shape(first, otherwise), [one])
    assert not is_near_duplicate(shape(first), [one])
    assert not is_near_duplicate(shape(first, unjoined), [one])
