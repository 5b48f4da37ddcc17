"""OpenAI-compatible servers: what each offers is found out once, and nothing it refuses is fatal."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from catalog.config import ModelSpec
from server.backends.access import Access
from server.backends.attempts import Pacing
from server.backends.backend import Message, Request
from server.backends.compatible_wire import CompatibleBackend, open_compatible
from server.backends.errors import BackendMisconfigured, BackendUnavailable, ContextTooLong
from tests.server.backends.providers.local_servers import MODEL, LocalServer
from tests.server.backends.providers.loopback import Fail, Say, served

pytestmark = pytest.mark.anyio

SUM: dict[str, Any] = {
    "type": "object",
    "properties": {"total": {"type": "integer"}, "why": {"type": "string", "pattern": r"\d+\$"}},
    "required": ["total"],
}
ASK = Request((Message("user", "Add 1 and 2."),), SUM)


@asynccontextmanager
async def opened(
    server: LocalServer,
    pacing: Pacing,
    *,
    memory: Path | None = None,
    key: str | None = None,
    model: str = MODEL,
    url: str | None = None,
) -> AsyncGenerator[CompatibleBackend]:
    async with served(server.app) as root:
        address = url or f"{root}/v1"
        spec = ModelSpec("openai-compatible", model, address)
        async with open_compatible(spec, Access(key, address, "SKILLBANK_API_KEY"), memory, pacing) as wire:
            yield wire


OFFERS: dict[str, tuple[LocalServer, str, str, int | None]] = {
    "llama-server": (
        LocalServer(kind="llama.cpp", obeys=("json_schema", "object_schema")),
        "schema",
        "response_format json_schema (llama.cpp)",
        4096,
    ),
    "llama_cpp.server, which fails on json_schema": (
        LocalServer(refuses={"json_schema": 500}, obeys=("object_schema",)),
        "schema",
        "response_format json_object with schema",
        None,
    ),
    "old llama-server with a grammar alone": (
        LocalServer(kind="llama.cpp", refuses={"json_schema": 400, "object_schema": 400}, obeys=("grammar",)),
        "schema",
        "json_schema to grammar (llama.cpp)",
        4096,
    ),
    "Ollama": (
        LocalServer(kind="Ollama", obeys=("json_schema",)),
        "schema",
        "response_format json_schema (Ollama)",
        8192,
    ),
    "Ollama that knows only its own field": (
        LocalServer(kind="Ollama", obeys=("format",)),
        "schema",
        "format (Ollama)",
        8192,
    ),
    "vLLM": (
        LocalServer(kind="vLLM", refuses={"json_schema": 400}, obeys=("structured_outputs",)),
        "schema",
        "structured_outputs json (vLLM)",
        32_768,
    ),
    "a server that makes JSON of no schema": (
        LocalServer(obeys=("json_object",)),
        "json",
        "response_format json_object",
        None,
    ),
    "a server that ignores every field": (LocalServer(), "none", "text", None),
}


@pytest.mark.parametrize(("server", "constraint", "detail", "context"), OFFERS.values(), ids=OFFERS)
async def test_what_a_server_enforces_is_tried_not_believed(
    pacing: Pacing, server: LocalServer, constraint: str, detail: str, context: int | None
):
    async with opened(server, pacing) as backend:
        offer = await backend.examine()
        before = len(server.chats)
        answer = await backend.complete(ASK)
    assert (offer.constraint, offer.detail, offer.context_tokens) == (constraint, detail, context)
    assert (answer.constraint, backend.context_tokens) == (constraint, context)
    assert len(server.chats) == before + 1
    if constraint == "schema":
        assert json.loads(answer.text)["total"] == 1


async def test_a_server_is_tried_once_and_remembered_by_address_and_model(pacing: Pacing, tmp_path: Path):
    memory = tmp_path / "offers.json"
    server = LocalServer(kind="vLLM", obeys=("structured_outputs",))
    async with opened(server, pacing, memory=memory) as backend:
        await backend.examine()
        url = backend.name.removeprefix("openai-compatible:").partition("#")[0]
    tried = len(server.chats)
    kept = json.loads(memory.read_text())
    assert kept == {f"{url}#{MODEL}": {"form": "structured_outputs json", "kind": "vLLM"}}
    async with served(server.app) as root:
        moved = {f"{root}/v1#{MODEL}": kept[f"{url}#{MODEL}"]}
        memory.write_text(json.dumps(moved))
        spec = ModelSpec("openai-compatible", MODEL, f"{root}/v1")
        async with open_compatible(spec, Access(url=f"{root}/v1"), memory, pacing) as again:
            assert (await again.examine()).detail == "structured_outputs json (vLLM)"
            await again.complete(ASK)
    assert len(server.chats) == tried + 1


@pytest.mark.parametrize("content", ["", "[]", '{"x": 1}', '{"URL": {"form": "magic", "kind": "vLLM"}}'])
async def test_a_memory_that_cannot_be_read_costs_a_trial_alone(pacing: Pacing, tmp_path: Path, content: str):
    memory = tmp_path / "offers.json"
    memory.write_text(content)
    async with opened(LocalServer(obeys=("json_schema",)), pacing, memory=memory) as backend:
        assert (await backend.examine()).constraint == "schema"


@pytest.mark.parametrize("status", [400, 422, 500])
async def test_a_schema_that_is_refused_costs_a_form_and_no_failed_request(
    pacing: Pacing, pauses: Any, status: int
):
    server = LocalServer(obeys=("json_schema", "object_schema"))
    async with opened(server, pacing) as backend:
        await backend.examine()
        server.refuses = {"json_schema": status}
        answer = await backend.complete(ASK)
        again = await backend.complete(ASK)
    assert (answer.constraint, again.constraint) == ("schema", "schema")
    assert json.loads(answer.text)["total"] == 1
    assert "schema" in server.chats[-1]["response_format"]
    assert pauses.waited == []


async def test_patterns_and_other_traps_are_left_out_of_the_schema(pacing: Pacing):
    server = LocalServer(obeys=("json_schema",))
    async with opened(server, pacing) as backend:
        await backend.complete(ASK)
    sent = server.chats[-1]["response_format"]["json_schema"]["schema"]
    assert sent["properties"] == {"total": {"type": "integer"}, "why": {"type": "string"}}


@pytest.mark.parametrize(
    ("server", "requests"),
    [
        (LocalServer(Say(("a b", "c", "d e f", "g", "h")), kind="llama.cpp", slots=2), [2, 2, None]),
        (LocalServer(Say(("a", "b", "c", "d", "e")), slots=9), [5]),
        (LocalServer(Say.one("a")), [5, None, None, None, None]),
        (LocalServer(Say.one("a"), refuses={"n": 400}), [5, None, None, None, None, None]),
    ],
    ids=["slots", "any n", "n is ignored", "n is refused"],
)
async def test_alternatives_are_asked_for_in_as_few_requests_as_the_server_allows(
    pacing: Pacing, server: LocalServer, requests: list[int | None]
):
    async with opened(server, pacing) as backend:
        await backend.examine()
        before = len(server.chats)
        answer = await backend.complete(Request((Message("user", "Go"),), n=5, seed=3))
    assert len(answer.texts) == len(answer.stops) == 5
    chats = server.chats[before:]
    assert [body.get("n") for body in chats] == requests
    seeds = [body["seed"] for body in chats if "n" not in body]
    assert len({*seeds}) == len(seeds)


async def test_tokens_of_several_alternatives_are_counted_and_marked(pacing: Pacing):
    server = LocalServer(Say(("a b c", "d e")), kind="llama.cpp", slots=2)
    async with opened(server, pacing) as backend:
        answer = await backend.complete(Request((Message("user", "Go"),), n=2))
        assert await backend.count_tokens("one two three") == 3
    assert (answer.usage.output_tokens, answer.usage.is_estimated, answer.cost_usd) == (5, True, None)


async def test_a_server_that_sends_no_usage_is_estimated(pacing: Pacing):
    async with opened(LocalServer(Say.one("a b c d"), sends_usage=False), pacing) as backend:
        usage = (await backend.complete(Request((Message("user", "Go now"),)))).usage
        assert await backend.count_tokens("one two three") == 5
    assert (usage.input_tokens, usage.output_tokens, usage.is_estimated) == (2, 3, True)


@pytest.mark.parametrize("refused", ["temperature", "stream_options"])
async def test_a_parameter_that_the_server_names_as_refused_is_left_out(pacing: Pacing, refused: str):
    server = LocalServer(Say.one("a"), refuses={refused: 400})
    async with opened(server, pacing) as backend:
        assert (await backend.complete(Request((Message("user", "Go"),)))).text == "a"
        assert backend.samples is (refused != "temperature")


async def test_a_model_that_is_not_named_is_the_first_that_is_served(pacing: Pacing):
    server = LocalServer(Say.one("a"))
    async with opened(server, pacing, model="") as backend:
        await backend.complete(Request((Message("user", "Go"),)))
    assert server.chats[-1]["model"] == MODEL


async def test_a_key_is_sent_where_one_is_set_and_a_dummy_where_not(pacing: Pacing):
    server = LocalServer(key="secret-of-the-house")
    async with opened(server, pacing, key="secret-of-the-house") as backend:
        assert (await backend.examine()).detail == "text"
    async with opened(server, pacing) as backend:
        with pytest.raises(BackendMisconfigured, match="it wants a key: set SKILLBANK_API_KEY"):
            await backend.examine()


async def test_a_prompt_that_does_not_fit_is_no_fault_of_the_schema(pacing: Pacing):
    long = Fail(400, "request (9000 tokens) exceeds the available context size (4096 tokens)")
    server = LocalServer(obeys=("json_schema",))
    async with opened(server, pacing) as backend:
        await backend.examine()
        server.script, server.obeys = [long], ()
        before = len(server.chats)
        with pytest.raises(ContextTooLong):
            await backend.complete(ASK)
    assert len(server.chats) == before + 1


async def test_a_server_that_refuses_everything_is_not_remembered(pacing: Pacing, tmp_path: Path):
    memory = tmp_path / "offers.json"
    server = LocalServer(Fail(400, "this model cannot chat"))
    async with opened(server, pacing, memory=memory) as backend:
        with pytest.raises(BackendMisconfigured, match="this model cannot chat"):
            await backend.examine()
    assert not memory.exists()


async def test_nobody_there_is_said_with_the_address_and_what_to_check(pacing: Pacing):
    async with opened(LocalServer(), pacing, url="http://127.0.0.1:9/v1") as backend:
        with pytest.raises(BackendUnavailable, match=r"nobody answers at http://127\.0\.0\.1:9/v1.*running"):
            await backend.examine()


class Truncating(LocalServer):
    """Cuts its first stream off before the end."""

    async def events(self, body: dict[str, Any], texts: list[str]) -> AsyncIterator[bytes]:
        async for event in super().events(body, texts):
            if len(self.chats) == 1 and b'"stop"' in event:
                return
            yield event


async def test_a_truncated_stream_is_tried_again(pacing: Pacing):
    server = Truncating(Say.one("a"))
    async with opened(server, pacing) as backend:
        await backend.examine()
        server.asked.clear()
        answer = await backend.complete(Request((Message("user", "Go"),)))
    assert (answer.text, answer.retries) == ("a", 1)
