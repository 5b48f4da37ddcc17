"""The wire to compatible servers against a real llama.cpp with SmolLM2, where both are on this machine."""

from __future__ import annotations

import json
import shutil
from collections.abc import AsyncGenerator
from pathlib import Path
from subprocess import DEVNULL

import anyio
import httpx2
import platformdirs
import pytest

from catalog.config import ModelSpec
from server.backends.access import Access
from server.backends.backend import Message, Request
from server.backends.compatible_wire import open_compatible
from server.backends.errors import BackendMisconfigured, ContextTooLong

pytestmark = [pytest.mark.anyio, pytest.mark.live]

KEY = "key-of-this-test"
PORT = 18_733
FLIGHT = {
    "type": "object",
    "properties": {"city": {"type": "string", "enum": ["Oslo", "Rome"]}, "price": {"type": "integer"}},
    "required": ["city", "price"],
}


def command() -> list[str]:
    """Return what starts the server; skips with the reason where something is missing."""
    cache = platformdirs.user_cache_path("skillbank")
    program = shutil.which("llama-server") or next(map(str, cache.glob("runtimes/*/llama-server")), None)
    weights = next(map(str, cache.glob("models/smollm2-135m*.gguf")), None)
    if program is None or weights is None:
        missing = "llama-server" if program is None else "the weights of SmolLM2"
        pytest.skip(f"{missing} is not on this machine: skillbank model fetch smollm2-135m")
    options = ["-c", "8192", "-np", "2", "-t", "1", "--no-ui", "--api-key", KEY]
    return [program, "-m", weights, "--host", "127.0.0.1", "--port", str(PORT), *options]


@pytest.fixture
async def url() -> AsyncGenerator[str]:
    async with await anyio.open_process(
        command(), env={"OMP_WAIT_POLICY": "passive"}, stdout=DEVNULL, stderr=DEVNULL
    ) as server:
        async with httpx2.AsyncClient(trust_env=False) as client:
            with anyio.fail_after(60):
                while not await answers(client):
                    assert server.returncode is None, "llama-server ended"
        yield f"http://127.0.0.1:{PORT}"
        server.terminate()


async def answers(client: httpx2.AsyncClient) -> bool:
    try:
        return (await client.get(f"http://127.0.0.1:{PORT}/health")).is_success
    except httpx2.TransportError:
        await anyio.sleep(0.2)  # of another process: there is no event to wait for
        return False


async def test_the_wire_speaks_with_a_real_server(url: str, tmp_path: Path):
    spec = ModelSpec("local", "smollm2")
    async with open_compatible(spec, Access(KEY, f"{url}/v1"), tmp_path / "offers.json") as backend:
        offer = await backend.examine()
        assert (offer.constraint, offer.detail) == ("schema", "response_format json_schema (llama.cpp)")
        assert offer.context_tokens == 4096
        flight = await backend.complete(Request((Message("user", "Rome costs 90. Say it as JSON."),), FLIGHT))
        assert {*json.loads(flight.text)} == {"city", "price"}
        assert not flight.usage.is_estimated
        several = Request((Message("user", "Say a word."),), n=5, temperature=0.8, max_output_tokens=8)
        assert len((await backend.complete(several)).texts) == 5
        assert 3 <= await backend.count_tokens("five words are in here") <= 8
        with pytest.raises(ContextTooLong):
            await backend.complete(Request((Message("user", "word " * 9_000),)))
    async with open_compatible(spec, Access(None, f"{url}/v1")) as stranger:
        with pytest.raises(BackendMisconfigured, match="it wants a key"):
            await stranger.examine()
