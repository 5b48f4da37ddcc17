"""Structured answers of hosted models: the dialects that providers enforce, and what they refuse."""

from __future__ import annotations

import json
from typing import Any

import pytest

from server.backends.attempts import Pacing
from server.backends.backend import Message, Request
from server.backends.errors import BackendMisconfigured
from tests.server.backends.conftest import open_openai_api
from tests.server.backends.providers.loopback import Fail, Say
from tests.server.backends.providers.openai_api import MODEL, THINKER, OpenAIApi

pytestmark = pytest.mark.anyio

PLAN: dict[str, Any] = {
    "type": "object",
    "properties": {
        "steps": {
            "type": "array",
            "minItems": 1,
            "items": {
                "oneOf": [
                    {
                        "type": "object",
                        "properties": {
                            "tool": {"const": "add"},
                            "a": {"type": "number", "minimum": 0},
                            "b": {"type": ["number", "null"]},
                            "note": {"type": "string", "maxLength": 9},
                        },
                        "required": ["tool", "a", "b"],
                    },
                    {"$ref": "#/$defs/wait"},
                ]
            },
        }
    },
    "required": ["steps"],
    "additionalProperties": False,
    "$defs": {
        "wait": {"type": "object", "properties": {"tool": {"const": "wait"}}, "required": ["tool"]},
    },
}
OPEN: dict[str, Any] = {
    "type": "object",
    "properties": {"arguments": {"type": "object"}},
    "required": ["arguments"],
}
FULL = {"steps": [{"tool": "add", "a": 1, "b": None, "note": None}, {"tool": "wait"}]}


def asking(schema: dict[str, Any], **more: Any) -> Request:
    return Request((Message("user", "Plan it."),), schema, schema_name="plan", **more)


async def test_a_schema_is_enforced_natively_in_the_provider_s_dialect(hosted: Any, pacing: Pacing):
    api, open_wire, _ = hosted
    provider = api(Say.one(json.dumps(FULL)))
    async with open_wire(provider, pacing) as backend:
        answer = await backend.complete(asking(PLAN))
    assert (answer.constraint, answer.retries, len(provider.asked)) == ("schema", 0, 1)
    assert json.loads(answer.text)["steps"][0]["a"] == 1


async def test_nulls_that_only_the_strict_dialect_wants_are_taken_out_again(pacing: Pacing):
    async with open_openai_api(OpenAIApi(Say.one(json.dumps(FULL))), pacing) as backend:
        answer = await backend.complete(asking(PLAN))
    assert json.loads(answer.text) == {"steps": [{"tool": "add", "a": 1, "b": None}, {"tool": "wait"}]}


async def test_a_schema_with_free_keys_is_asked_for_as_a_tool_call(hosted: Any, pacing: Pacing):
    api, open_wire, _ = hosted
    provider = api(Say.one('{"arguments": {"x": 1}}'))
    async with open_wire(provider, pacing) as backend:
        answer = await backend.complete(asking(OPEN))
    assert (answer.text, answer.constraint, answer.stops) == ('{"arguments": {"x": 1}}', "json", ("end",))
    assert provider.bodies[0]["tool_choice"]["name"] == "plan"


async def test_a_schema_that_is_refused_goes_down_to_a_tool_call_and_stays_there(hosted: Any, pacing: Pacing):
    api, open_wire, _ = hosted
    provider = api(Fail(400, "compiled grammar is too large"), Say.one("{}"))
    async with open_wire(provider, pacing) as backend:
        first = await backend.complete(asking(PLAN))
        second = await backend.complete(asking(PLAN))
        await backend.complete(asking({"type": "object", "properties": {}, "additionalProperties": False}))
    assert (first.constraint, second.constraint) == ("json", "json")
    assert ["tool_choice" in body for body in provider.bodies] == [False, True, True, False]


async def test_a_tool_call_that_is_refused_goes_down_to_text(hosted: Any, pacing: Pacing):
    api, open_wire, _ = hosted
    async with open_wire(api(Fail(400, "no tools"), Fail(400, "no tools"), Say.one("{}")), pacing) as backend:
        assert (await backend.complete(asking(PLAN))).constraint == "none"


async def test_a_request_that_is_refused_in_every_form_is_an_error(hosted: Any, pacing: Pacing):
    api, open_wire, _ = hosted
    async with open_wire(api(Fail(400, "never")), pacing) as backend:
        with pytest.raises(BackendMisconfigured, match="never"):
            await backend.complete(asking(PLAN))


async def test_alternatives_come_in_order_with_the_usage_of_all(hosted: Any, pacing: Pacing):
    api, open_wire, _ = hosted
    one = "It is noon."
    async with open_wire(api(Say((one,) * 3)), pacing) as backend:
        answer = await backend.complete(Request((Message("user", "What time is it?"),), n=3, seed=7))
    assert (answer.texts, answer.stops) == ((one,) * 3, ("end",) * 3)
    assert answer.usage.output_tokens == 6


async def test_a_population_is_one_request_where_the_model_has_chat_completions(pacing: Pacing):
    provider = OpenAIApi(Say(("a", "b", "c")))
    async with open_openai_api(provider, pacing, model=MODEL) as backend:
        answer = await backend.complete(asking(PLAN, n=3, temperature=0.5))
    assert (answer.texts, len(provider.asked)) == (("a", "b", "c"), 1)
    assert (provider.bodies[0]["n"], provider.bodies[0]["temperature"]) == (3, 0.5)


async def test_a_model_that_takes_no_temperature_is_learned(pacing: Pacing):
    provider = OpenAIApi(Say.one("a"))
    async with open_openai_api(provider, pacing, model=THINKER) as backend:
        assert backend.samples
        await backend.complete(asking(PLAN))
        assert not backend.samples
        await backend.complete(asking(PLAN, n=2))
    paths = [asked.path.rsplit("/", 1)[-1] for asked in provider.asked]
    assert paths == ["responses", "responses", "completions", "responses", "responses"]
    assert ["temperature" in body for body in provider.bodies] == [True, False, False, False, False]


async def test_anthropic_is_sent_no_sampling_parameters(hosted: Any, pacing: Pacing):
    api, open_wire, variable = hosted
    provider = api(Say.one("a"))
    async with open_wire(provider, pacing) as backend:
        await backend.complete(asking(PLAN, temperature=0.9, seed=1))
        assert backend.samples is ("temperature" in provider.bodies[0])
        assert backend.samples is (variable == "OPENAI_API_KEY")
