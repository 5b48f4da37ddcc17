"""What goes wrong with a provider, each through its real SDK against its API on loopback."""

from __future__ import annotations

import email.utils
import time
from typing import Any

import anyio
import pytest

from server.backends.attempts import Pacing
from server.backends.backend import Message, Request
from server.backends.errors import (
    BackendMisconfigured,
    BackendOverloaded,
    BackendTimeout,
    BackendUnavailable,
    ContextTooLong,
)
from tests.server.backends.conftest import Pauses
from tests.server.backends.providers.loopback import RIGHT_KEY, BreakOff, Fail, FailMidway, Hang, Say

pytestmark = pytest.mark.anyio

ASK = Request((Message("system", "You are a clock. " * 20), Message("user", "What time is it?")))
NOON = Say.one("It is noon.")


async def test_an_answer_comes_whole_with_its_usage_and_cost(hosted: Any, pacing: Pacing):
    api, open_wire, _ = hosted
    async with open_wire(api(Say.one("It is noon, and the sun shines.", "end", 40)), pacing) as backend:
        answer = await backend.complete(ASK)
    assert (answer.texts, answer.stops, answer.retries) == (("It is noon, and the sun shines.",), ("end",), 0)
    usage = answer.usage
    assert (usage.output_tokens, usage.reasoning_tokens, usage.is_estimated) == (47, 40, False)
    assert usage.input_tokens > 80
    assert answer.cost_usd is not None
    assert 0 < answer.cost_usd < 0.01


async def test_the_second_request_finds_the_prefix_in_the_cache(hosted: Any, pacing: Pacing):
    api, open_wire, _ = hosted
    async with open_wire(api(NOON), pacing) as backend:
        first = await backend.complete(ASK)
        second = await backend.complete(Request((ASK.messages[0], Message("user", "And now?"))))
    assert first.usage.cached_tokens == 0
    assert second.usage.cached_tokens == 85
    assert second.cost_usd < first.cost_usd


@pytest.mark.parametrize("stop", ["length", "refusal"])
async def test_how_an_answer_ended_is_told(hosted: Any, pacing: Pacing, stop: str):
    api, open_wire, _ = hosted
    async with open_wire(api(Say.one("I cannot", stop)), pacing) as backend:
        answer = await backend.complete(ASK)
    assert (answer.text, answer.stops) == ("I cannot", (stop,))


FATAL = {
    "400": (Fail(400, "that makes no sense"), "the request was refused (400: ", BackendMisconfigured),
    "403": (Fail(403, "not for you"), "may not do this: use another key or model", BackendMisconfigured),
    "404": (Fail(404, "gone"), "there is no such model or address", BackendMisconfigured),
    "no credit": (
        Fail(429, "You exceeded your current quota", "insufficient_quota"),
        "see to its billing",
        BackendMisconfigured,
    ),
    "prompt too long": (
        Fail(400, "prompt is too long: 300000 tokens > 200000 maximum", "context_length_exceeded"),
        "the prompt does not fit the model",
        ContextTooLong,
    ),
    "request too large": (Fail(413, "too large"), "the prompt does not fit the model", ContextTooLong),
}


@pytest.mark.parametrize(("fail", "remedy", "kind"), FATAL.values(), ids=FATAL)
async def test_what_cannot_pass_is_not_tried_again(
    hosted: Any, pacing: Pacing, pauses: Pauses, fail: Fail, remedy: str, kind: type[Exception]
):
    api, open_wire, _ = hosted
    provider = api(fail)
    async with open_wire(provider, pacing) as backend:
        with pytest.raises(kind, match=backend.name) as caught:
            await backend.complete(ASK)
    assert remedy in str(caught.value)
    assert (len(provider.asked), pauses.waited) == (1, [])


async def test_a_refused_key_is_named_by_its_variable_and_never_shown(hosted: Any, pacing: Pacing):
    api, open_wire, variable = hosted
    wrong = "sk-wrong-0123456789abcdef"
    async with open_wire(api(NOON), pacing, key=wrong) as backend:
        with pytest.raises(BackendMisconfigured) as caught:
            await backend.complete(ASK)
    assert f"the key was refused: check {variable}" in str(caught.value)
    assert "[redacted]" in str(caught.value)
    assert wrong not in f"{caught.value!r} {caught.value.__cause__} {vars(backend)}"


async def test_without_a_key_nothing_is_opened(hosted: Any, pacing: Pacing):
    api, open_wire, variable = hosted
    with pytest.raises(BackendMisconfigured, match=f"there is no key: set {variable} in the environment"):
        async with open_wire(api(NOON), pacing, key=None):
            pass


async def test_a_model_that_is_not_there_is_told_apart_from_a_bad_request(hosted: Any, pacing: Pacing):
    api, open_wire, _ = hosted
    async with open_wire(api(NOON), pacing, model="no-such") as backend:
        with pytest.raises(BackendMisconfigured, match="no such model or address: check the name"):
            await backend.complete(ASK)
        with pytest.raises(BackendMisconfigured, match="no such model"):
            await backend.examine()


PASSING = {
    "429": (Fail(429, "slow down"), BackendOverloaded),
    "500": (Fail(500, "oops"), BackendUnavailable),
    "503": (Fail(503, "busy"), BackendOverloaded),
    "529": (Fail(529, "overloaded"), BackendOverloaded),
    "truncated": (BreakOff(), BackendUnavailable),
    "vanished": (BreakOff(abruptly=True), BackendUnavailable),
    "overloaded midway": (FailMidway("busy", "overloaded_error"), BackendOverloaded),
    "failed midway": (FailMidway("oops", "server_error"), BackendUnavailable),
}


@pytest.mark.parametrize("trouble", [trouble for trouble, _ in PASSING.values()], ids=PASSING)
async def test_what_can_pass_is_tried_again_until_it_does(
    hosted: Any, pacing: Pacing, pauses: Pauses, trouble: Any
):
    api, open_wire, _ = hosted
    async with open_wire(api(trouble, trouble, NOON), pacing) as backend:
        answer = await backend.complete(ASK)
    assert (answer.text, answer.retries, len(pauses.waited)) == ("It is noon.", 2, 2)


@pytest.mark.parametrize(("trouble", "kind"), PASSING.values(), ids=PASSING)
async def test_what_does_not_pass_is_told_after_the_last_try(
    hosted: Any, pacing: Pacing, trouble: Any, kind: type[Exception]
):
    api, open_wire, _ = hosted
    provider = api(trouble)
    async with open_wire(provider, pacing) as backend:
        with pytest.raises(kind, match=f"{backend.name}: .*again|{backend.name}: .*later"):
            await backend.complete(ASK)
    assert len(provider.asked) == 3


def in_a_minute() -> str:
    return email.utils.formatdate(time.time() + 60, usegmt=True)


WAITS = {
    "seconds": ({"retry-after": "7"}, 7.0, 7.2),
    "milliseconds": ({"retry-after": "7", "retry-after-ms": "1500"}, 1.5, 1.7),
    "date": ({"retry-after": "DATE"}, 50.0, 61.0),
    "nonsense": ({"retry-after": "soon"}, 0.25, 0.5),
    "nothing": ({}, 0.25, 0.5),
}


@pytest.mark.parametrize(("headers", "least", "most"), WAITS.values(), ids=WAITS)
async def test_a_provider_says_how_long_to_wait(
    hosted: Any, pacing: Pacing, pauses: Pauses, headers: dict[str, str], least: float, most: float
):
    api, open_wire, _ = hosted
    said = {name: in_a_minute() if value == "DATE" else value for name, value in headers.items()}
    async with open_wire(api(Fail(429, "slow down", headers=said), NOON), pacing) as backend:
        await backend.complete(Request(ASK.messages, deadline_seconds=600))
    assert least <= pauses.waited[0] <= most


async def test_a_wait_beyond_the_deadline_is_not_begun(hosted: Any, pacing: Pacing, pauses: Pauses):
    api, open_wire, _ = hosted
    async with open_wire(api(Fail(429, "slow down", headers={"retry-after": "3600"})), pacing) as backend:
        with pytest.raises(BackendOverloaded):
            await backend.complete(ASK)
    assert pauses.waited == []


async def test_the_deadline_bounds_an_answer_that_hangs(hosted: Any, pacing: Pacing):
    api, open_wire, _ = hosted
    provider = api(Hang())
    async with open_wire(provider, pacing) as backend:
        with pytest.raises(BackendTimeout, match=r"no answer within 0\.5 s"):
            await backend.complete(Request(ASK.messages, deadline_seconds=0.5))
        with anyio.fail_after(10):
            await provider.disconnected.wait()


async def test_cancelling_closes_the_request(hosted: Any, pacing: Pacing):
    api, open_wire, _ = hosted
    provider = api(Hang())
    with anyio.fail_after(20):
        async with open_wire(provider, pacing) as backend, anyio.create_task_group() as tasks:
            tasks.start_soon(backend.complete, ASK)
            await provider.hanging.wait()
            assert not provider.disconnected.is_set()
            tasks.cancel_scope.cancel()
        await provider.disconnected.wait()


async def test_nobody_there_is_said_with_the_address(hosted: Any, pacing: Pacing):
    api, open_wire, _ = hosted
    async with open_wire(api(NOON), pacing, url="http://127.0.0.1:9") as backend:
        with pytest.raises(BackendUnavailable, match=r"nobody answers at http://127\.0\.0\.1"):
            await backend.complete(ASK)


async def test_no_more_requests_are_in_flight_than_the_backend_allows(hosted: Any, pacing: Pacing):
    api, open_wire, _ = hosted
    provider = api(NOON)
    provider.meet = 2
    async with open_wire(provider, pacing) as backend, anyio.create_task_group() as tasks:
        for _ in range(8):
            tasks.start_soon(backend.complete, ASK)
    assert (len(provider.asked), provider.most_in_flight) == (8, 2)


async def test_the_model_can_be_looked_at_without_generating(hosted: Any, pacing: Pacing):
    api, open_wire, _ = hosted
    provider = api(Fail(500))
    async with open_wire(provider, pacing) as backend:
        assert (await backend.examine()).constraint == "schema"
    assert provider.asked[0].path.startswith("/v1/models/")
    assert RIGHT_KEY not in str(provider.asked[0].body)
