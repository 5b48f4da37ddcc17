"""A real llama-server with real weights: the wire that a local model answers on, and its life as a process.

Runs where a llama-server and SmolLM2 are there, or can be had quickly, and is skipped with the reason
elsewhere. `SKILLBANK_LOCAL_MODEL=1` gets what is missing, which may build llama-server for ten processor
minutes; then Qwen2.5-Coder 1.5B is measured too.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from catalog.config import parse_model
from server.backends.backend import Message, Request
from server.backends.roles import open_models
from server.models.building import build_runtime
from server.models.errors import FetchFailed
from server.models.fetching import fetch_weights
from server.models.known import KNOWN_MODELS, KnownModel, find_known_model
from server.models.leases import Lease
from server.models.runtime import Host, host_of
from server.models.serving import local_serving, open_local_model
from server.models.speed import measure_speed
from server.models.step import Step
from server.settings import read_settings

PROJECT = Path(__file__).parents[2]
FORCED = os.environ.get("SKILLBANK_LOCAL_MODEL") == "1"

pytestmark = [pytest.mark.live, pytest.mark.anyio]

SCHEMA = {
    "type": "object",
    "properties": {"tool": {"enum": ["clock", "mail"]}, "count": {"type": "integer"}},
    "required": ["tool", "count"],
    "additionalProperties": False,
}

Ask = Callable[..., Any]


def ignore(step: Step) -> None:
    del step


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


async def host_with(model: KnownModel) -> Host:
    """Return this machine with a model and a runtime on it, or skip and say what is missing."""
    host = host_of(read_settings())
    if host.runtime() is None:
        if not FORCED:
            pytest.skip("no llama-server here, and building one takes long: SKILLBANK_LOCAL_MODEL=1 does it")
        await build_runtime(host, ignore)
    if not host.shelf.has(model):
        try:
            await fetch_weights(model, host, "auto", ignore)
        except FetchFailed as error:
            if FORCED:
                raise
            pytest.skip(f"the weights cannot be had here: {error}")
    return host


@pytest.fixture(scope="module")
async def host() -> Host:
    return await host_with(find_known_model("smollm2-135m", KNOWN_MODELS))


@pytest.fixture(scope="module")
async def lease(host: Host) -> AsyncGenerator[Lease]:
    async with _served(host, "smollm2-135m") as lease:
        yield lease


@asynccontextmanager
async def _served(host: Host, name: str) -> AsyncGenerator[Lease]:
    async with open_local_model(host, name) as lease:
        yield lease


@pytest.fixture
async def ask(lease: Lease) -> AsyncGenerator[Ask]:
    """Ask the model something over its OpenAI-compatible API; returns the response."""
    headers = {"Authorization": f"Bearer {lease.key}"}
    async with httpx2.AsyncClient(timeout=300, trust_env=False, headers=headers) as client:

        async def asked(text: str, **more: Any) -> httpx2.Response:
            body = {
                "messages": [{"role": "user", "content": text}],
                "max_tokens": 24,
                "temperature": 0,
                **more,
            }
            return await client.post(f"{lease.url}/chat/completions", json=body)

        yield asked


async def test_it_answers_and_counts(ask, lease):
    said = (await ask("Say hello.")).raise_for_status().json()
    assert said["model"] == lease.model == "smollm2-135m"
    assert said["choices"][0]["message"]["content"].strip()
    assert 0 < said["usage"]["completion_tokens"] <= 24


async def test_an_answer_under_a_schema_fits_it(ask):
    shape = {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": SCHEMA}}
    said = (await ask("Which tool tells the time? Answer in JSON.", response_format=shape)).json()
    answer = json.loads(said["choices"][0]["message"]["content"])
    assert answer["tool"] in ("clock", "mail")
    assert isinstance(answer["count"], int)


async def test_a_population_is_one_request(ask, lease):
    said = (await ask("Tell me something.", n=lease.slots, temperature=1.0)).raise_for_status().json()
    assert len({choice["message"]["content"] for choice in said["choices"]}) > 1
    assert len(said["choices"]) == lease.slots
    refused = await ask("Tell me something.", n=lease.slots + 1)
    assert refused.status_code == 400


async def test_the_prompt_that_repeats_is_read_once(ask):
    catalog = "Tools: " + ", ".join(f"tool{number} does thing {number}" for number in range(60))
    await ask(f"{catalog}. Which is the first?")
    said = (await ask(f"{catalog}. Which is the last?")).json()
    usage = said["usage"]
    assert usage["prompt_tokens_details"]["cached_tokens"] > 0.8 * usage["prompt_tokens"]


async def test_answers_share_the_whole_context_and_a_prompt_over_it_is_refused(ask, lease):
    refused = await ask("word " * (lease.context_tokens + 1))
    assert refused.status_code == 400
    assert refused.json()["error"]["type"] == "exceed_context_size_error"
    assert refused.json()["error"]["n_ctx"] == lease.context_tokens == 8_192


async def test_the_wire_of_the_planner_reaches_it_by_its_name(host):
    """From the string in a configuration to validated alternatives of one request, key and all."""
    spec = parse_model("local:smollm2")
    asked = Request((Message("user", "Which tool tells the time? Answer in JSON."),), schema=SCHEMA, n=2)
    async with open_models({"planner": spec}, {}, serving=local_serving(host)) as models:
        backend = await models.backend("planner")
        assert backend is not None
        completion = await backend.complete(replace(asked, temperature=0.8, max_output_tokens=64))
        assert await backend.count_tokens("one two three") == 3
    assert backend.context_tokens == 8_192
    assert completion.constraint == "schema"
    answers = [json.loads(text) for text in completion.texts]
    assert {answer["tool"] for answer in answers} <= {"clock", "mail"}
    assert len(answers) == 2
    assert completion.usage.output_tokens > 0


async def test_nobody_without_the_key_is_answered(lease):
    async with httpx2.AsyncClient(trust_env=False) as client:
        refused = await client.post(f"{lease.url}/chat/completions", json={"messages": []})
    assert refused.status_code == 401


async def test_its_speed_is_measured(lease):
    speed = await measure_speed(lease.url, lease.key)
    assert min(speed.prompt, speed.generation) > 0


async def test_a_kept_server_is_found_by_others_and_ends_with_its_skillbank(host):
    """`model serve` as a person runs it, in a process that is then killed without a chance to clean up."""
    command = [sys.executable, "-m", "server.cli", "model", "serve", "smollm2-135m", "--json"]
    process = await anyio.open_process(command, cwd=PROJECT, stdin=subprocess.DEVNULL)
    async with process:
        with anyio.fail_after(120):
            said = await _first_json(process)
            async with open_local_model(host, "smollm2-135m") as lease:
                assert (lease.url, lease.pid, lease.shared) == (said["url"], said["pid"], True)
            process.send_signal(signal.SIGKILL)
            while _is_alive(said["pid"]):
                await anyio.sleep(0.02)


async def _first_json(process: Any) -> Any:
    text = ""
    while True:
        text += (await process.stdout.receive()).decode()
        try:
            return json.loads(text)
        except ValueError:
            continue  # not all of it has come


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.skipif(not FORCED, reason="fetches 1.1 GB: SKILLBANK_LOCAL_MODEL=1 does it")
async def test_figures_of_the_model_that_plans(record_property, capsys):
    name = "qwen2.5-coder-1.5b"
    host = await host_with(find_known_model(name, KNOWN_MODELS))
    async with _served(host, name) as lease:
        speed = await measure_speed(lease.url, lease.key)
    record_property("prompt_tokens_per_second", speed.prompt)
    record_property("generated_tokens_per_second", speed.generation)
    with capsys.disabled():
        print(f"\n{name}: {speed.prompt:.0f} tokens/s read, {speed.generation:.1f} written")
    assert min(speed.prompt, speed.generation) > 0
