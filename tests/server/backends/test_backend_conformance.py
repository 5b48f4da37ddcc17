"""What every backend promises, whichever wire is behind it."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from catalog.config import ModelSpec
from server.backends.access import Access
from server.backends.attempts import Pacing
from server.backends.backend import Message, Request, Wire
from server.backends.compatible_wire import open_compatible
from server.backends.recorded import RecordedBackend
from server.backends.sampling import Lent, SamplingBackend
from server.backends.scripted import ScriptedBackend
from tests.server.backends.conftest import open_anthropic_api, open_openai_api
from tests.server.backends.providers.anthropic_api import AnthropicApi
from tests.server.backends.providers.local_servers import MODEL, LocalServer
from tests.server.backends.providers.loopback import Say, served
from tests.server.backends.providers.openai_api import OpenAIApi

pytestmark = pytest.mark.anyio

TEXT = json.dumps({"time": "noon"})
SCHEMA = {
    "type": "object",
    "properties": {"time": {"type": "string", "enum": ["noon"]}},
    "required": ["time"],
    "additionalProperties": False,
}
MESSAGES = (Message("system", "You are a clock."), Message("user", "What time is it?"))
ASK = Request(MESSAGES, SCHEMA, schema_name="clock", seed=1)
Opened = Callable[[Pacing, Path], AbstractAsyncContextManager[Wire]]


@asynccontextmanager
async def anthropic(pacing: Pacing, folder: Path) -> AsyncGenerator[Wire]:
    del folder
    async with open_anthropic_api(AnthropicApi(Say((TEXT,) * 3)), pacing) as backend:
        yield backend


@asynccontextmanager
async def openai(pacing: Pacing, folder: Path) -> AsyncGenerator[Wire]:
    del folder
    async with open_openai_api(OpenAIApi(Say((TEXT,) * 3)), pacing) as backend:
        yield backend


@asynccontextmanager
async def compatible(pacing: Pacing, folder: Path) -> AsyncGenerator[Wire]:
    server = LocalServer(Say((TEXT,) * 3), kind="llama.cpp", obeys=("json_schema",), slots=2)
    async with served(server.app) as root:
        spec = ModelSpec("openai-compatible", MODEL, f"{root}/v1")
        async with open_compatible(spec, Access(url=spec.url), folder / "offers.json", pacing) as backend:
            yield backend


@asynccontextmanager
async def sampling(pacing: Pacing, folder: Path) -> AsyncGenerator[Wire]:
    del pacing, folder

    async def lend(request: Request) -> Sequence[Lent]:
        return [Lent(TEXT, "client-model")] * request.n

    yield SamplingBackend(lend)


@asynccontextmanager
async def scripted(pacing: Pacing, folder: Path) -> AsyncGenerator[Wire]:
    del pacing, folder
    yield ScriptedBackend(lambda request: [TEXT] * request.n)


@asynccontextmanager
async def recorded(pacing: Pacing, folder: Path) -> AsyncGenerator[Wire]:
    del pacing
    inner = ScriptedBackend(lambda request: [TEXT] * request.n)
    recording = RecordedBackend(folder / "tape.jsonl", inner)
    for n in (1, 3):
        await recording.complete(Request(MESSAGES, SCHEMA, schema_name="clock", seed=1, n=n))
        await recording.complete(Request(MESSAGES, n=n))
    yield RecordedBackend(folder / "tape.jsonl")


EVERY = [anthropic, openai, compatible, sampling, scripted, recorded]


@pytest.mark.parametrize("opened", EVERY, ids=lambda opened: opened.__name__)
class TestBackend:
    async def test_an_answer_has_text_end_model_and_tokens(
        self, opened: Opened, pacing: Pacing, tmp_path: Path
    ):
        async with opened(pacing, tmp_path) as backend:
            answer = await backend.complete(Request(MESSAGES))
        assert (answer.text, answer.stops) == (TEXT, ("end",))
        assert answer.model
        assert answer.usage.input_tokens > 0
        assert answer.usage.output_tokens > 0
        assert answer.usage.cached_tokens <= answer.usage.input_tokens
        assert answer.constraint == "none"
        assert answer.seconds >= 0

    async def test_a_schema_is_asked_for_and_what_was_enforced_is_told(
        self, opened: Opened, pacing: Pacing, tmp_path: Path
    ):
        async with opened(pacing, tmp_path) as backend:
            answer = await backend.complete(ASK)
            offer = await backend.examine()
        assert json.loads(answer.text) == {"time": "noon"}
        assert answer.constraint in ("schema", "json", "none")
        assert offer.detail

    async def test_alternatives_are_told_apart_and_counted_together(
        self, opened: Opened, pacing: Pacing, tmp_path: Path
    ):
        several = Request(MESSAGES, SCHEMA, schema_name="clock", seed=1, n=3)
        async with opened(pacing, tmp_path) as backend:
            answer = await backend.complete(several)
        assert len(answer.texts) == len(answer.stops) == 3

    async def test_a_longer_text_has_more_tokens(self, opened: Opened, pacing: Pacing, tmp_path: Path):
        async with opened(pacing, tmp_path) as backend:
            few, many = await backend.count_tokens("a plan"), await backend.count_tokens("a plan " * 50)
        assert 0 < few < many

    async def test_a_backend_has_the_name_it_is_configured_by(
        self, opened: Opened, pacing: Pacing, tmp_path: Path
    ):
        async with opened(pacing, tmp_path) as backend:
            assert backend.name
            assert isinstance(backend.samples, bool)
            assert backend.context_tokens is None or backend.context_tokens > 0


@pytest.mark.parametrize(
    "wrong", [{"messages": ()}, {"n": 0}, {"max_output_tokens": 0}, {"deadline_seconds": 0.0}], ids=str
)
def test_a_request_that_asks_for_nothing_cannot_be_made(wrong: dict[str, object]):
    with pytest.raises(ValueError, match="a request needs"):
        Request(**({"messages": MESSAGES} | wrong))
