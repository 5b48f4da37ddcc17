"""Every provider's API on loopback, and the wire to it."""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest

from catalog.config import ModelSpec
from server.backends.access import Access
from server.backends.anthropic_wire import AnthropicBackend, open_anthropic
from server.backends.attempts import Pacing
from server.backends.openai_wire import OpenAIBackend, open_openai
from tests.server.backends.providers import anthropic_api, openai_api
from tests.server.backends.providers.loopback import RIGHT_KEY, Provider, served

Hosted = AnthropicBackend | OpenAIBackend
OpenHosted = Callable[..., AbstractAsyncContextManager[Hosted]]


class Pauses:
    """Lets time pass at once and keeps how much."""

    def __init__(self) -> None:
        self.waited: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.waited.append(seconds)


@pytest.fixture
def pauses() -> Pauses:
    return Pauses()


@pytest.fixture
def pacing(pauses: Pauses) -> Pacing:
    return Pacing(concurrency=2, retries=2, dice=random.Random(1), pause=pauses)


@asynccontextmanager
async def open_anthropic_api(
    provider: Provider,
    pacing: Pacing,
    *,
    key: str | None = RIGHT_KEY,
    model: str = anthropic_api.MODEL,
    url: str | None = None,
) -> AsyncGenerator[AnthropicBackend]:
    async with served(provider.app) as root:
        access = Access(key, url or root, "ANTHROPIC_API_KEY")
        async with open_anthropic(ModelSpec("anthropic", model), access, pacing) as backend:
            yield backend


@asynccontextmanager
async def open_openai_api(
    provider: Provider,
    pacing: Pacing,
    *,
    key: str | None = RIGHT_KEY,
    model: str = openai_api.MODEL,
    url: str | None = None,
) -> AsyncGenerator[OpenAIBackend]:
    async with served(provider.app) as root:
        access = Access(key, f"{url or root}/v1", "OPENAI_API_KEY")
        async with open_openai(ModelSpec("openai", model), access, pacing) as backend:
            yield backend


HOSTED: dict[str, tuple[Any, Any, str]] = {
    "anthropic": (anthropic_api.AnthropicApi, open_anthropic_api, "ANTHROPIC_API_KEY"),
    "openai": (openai_api.OpenAIApi, open_openai_api, "OPENAI_API_KEY"),
}


@pytest.fixture(params=[*HOSTED])
def hosted(request: pytest.FixtureRequest) -> tuple[Any, Any, str]:
    """A provider: its API, how a wire to it is opened, the variable of its key."""
    return HOSTED[request.param]
