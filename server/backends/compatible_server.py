"""What an OpenAI-compatible server says of itself: its kind, its model, its context, its tokenizer.

llama.cpp, Ollama and vLLM each have addresses of their own above `/v1`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import urlsplit, urlunsplit

import anyio
import httpx2
import openai

from server.backends.attempts import Setback
from server.backends.errors import BackendMisconfigured
from server.backends.failures import Teller
from server.backends.offers import ServerKind
from server.backends.openai_client import setbacks

__all__ = ["Address", "Server"]

_LOOK_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Server:
    """What is known of a server without asking its model."""

    kind: ServerKind
    model: str
    context_tokens: int | None
    slots: int | None
    """Alternatives that one request may ask for; None: not said."""


class Address:
    """One server, asked about itself."""

    def __init__(self, url: str, client: openai.AsyncOpenAI, teller: Teller) -> None:
        self._root = _native_root(url)
        self._client = client
        self._teller = teller

    async def look(self, model: str) -> Server:
        """Return what the server says of itself.

        Args:
            model: that is configured; empty: the first that is served.

        Raises:
            Setback: nobody answers, or the key is refused.
        """
        served = await self._served()
        model = model or next(iter(served), "")
        if not model:
            raise Setback(
                BackendMisconfigured(self._teller.told("it lists no model: name one after # in its URL"))
            )
        props = await self._get("/props")
        generation = props.get("default_generation_settings")
        if isinstance(generation, dict):
            context = _number(cast("Mapping[str, object]", generation).get("n_ctx"))
            return Server("llama.cpp", model, context, _number(props.get("total_slots")))
        if "version" in await self._get("/api/version"):
            running = cast("list[Mapping[str, object]]", (await self._get("/api/ps")).get("models") or [])
            contexts = [entry.get("context_length") for entry in running if entry.get("model") == model]
            return Server("Ollama", model, _number(next(iter(contexts), None)), 1)
        kind: ServerKind = "vLLM" if "version" in await self._get("/version") else "unknown"
        return Server(kind, model, served.get(model), None)

    async def count_tokens(self, server: Server, text: str) -> int | None:
        """Return how many tokens a text has, None where the server cannot be asked."""
        if server.kind == "llama.cpp":
            tokens = (await self._post("/tokenize", {"content": text})).get("tokens")
            return len(cast("list[object]", tokens)) if isinstance(tokens, list) else None
        if server.kind == "vLLM":
            count = (await self._post("/tokenize", {"model": server.model, "prompt": text})).get("count")
            return count if isinstance(count, int) else None
        return None

    async def _served(self) -> dict[str, int | None]:
        """Return the models that are listed with their context; empty where there is no list."""
        with setbacks(self._teller, lambda: False):
            try:
                page = await self._client.models.list()
            except openai.NotFoundError:
                return {}
        listed = cast("list[openai.types.Model] | None", page.data) or []
        return {model.id: _number((model.model_extra or {}).get("max_model_len")) for model in listed}

    async def _get(self, path: str) -> Mapping[str, object]:
        return await self._ask("get", path)

    async def _post(self, path: str, body: Mapping[str, object]) -> Mapping[str, object]:
        return await self._ask("post", path, body=body)

    async def _ask(self, verb: str, path: str, **fields: object) -> Mapping[str, object]:
        """Return what the server says at an address of its own; empty where it has none."""
        ask: Any = getattr(self._client, verb)
        try:
            with anyio.fail_after(_LOOK_SECONDS):
                said: httpx2.Response = await ask(self._root + path, cast_to=httpx2.Response, **fields)
                value: object = said.json()
        except (openai.APIError, httpx2.HTTPError, ValueError, TimeoutError):
            return {}
        return cast("Mapping[str, object]", value) if isinstance(value, dict) else {}


def _native_root(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/").removesuffix("/v1"), "", ""))


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and value > 0 else None
