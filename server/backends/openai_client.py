"""The OpenAI SDK as two wires use it: its client, what its errors mean, and chat read off a stream."""

from __future__ import annotations

import time
from collections.abc import AsyncIterable, Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import cast
from urllib.parse import urlsplit

import httpx2
import openai
from openai.types.chat import ChatCompletionChunk
from openai.types.chat.chat_completion_chunk import Choice
from openai.types.completion_usage import CompletionUsage

from server.backends.access import Access
from server.backends.backend import Stop, Usage
from server.backends.failures import Refused, Teller

__all__ = [
    "DUMMY_KEY",
    "OPENAI_URL",
    "ChatAnswer",
    "ChatReading",
    "chat_usage",
    "is_loopback",
    "make_client",
    "setbacks",
]

_NO_LIMIT_BUT_OURS = httpx2.Timeout(None, connect=10.0)
OPENAI_URL = "https://api.openai.com/v1"
DUMMY_KEY = "no-key"
"""Local servers want none, the SDK wants one."""
_STOPS: dict[str, Stop] = {"length": "length", "content_filter": "refusal"}


def make_client(access: Access) -> openai.AsyncOpenAI:
    """Return a client; entering it as a context closes its connections on leaving."""
    url = access.url or OPENAI_URL
    return openai.AsyncOpenAI(
        api_key=access.key or DUMMY_KEY,
        base_url=url,
        max_retries=0,
        timeout=_NO_LIMIT_BUT_OURS,
        http_client=openai.DefaultAsyncHttpxClient(
            base_url=url, timeout=_NO_LIMIT_BUT_OURS, trust_env=not is_loopback(url)
        ),
    )


def is_loopback(url: str) -> bool:
    """Return whether an address is this machine's, which no proxy reaches."""
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


@contextmanager
def setbacks(teller: Teller, has_begun: Callable[[], bool]) -> Generator[None]:
    """Turn the SDK's errors into setbacks.

    Args:
        teller: tells what they mean.
        has_begun: whether some of the answer came already.
    """
    try:
        yield
    except openai.APIStatusError as error:
        refused = Refused(
            error.status_code,
            _said(error),
            f"{error.type or ''} {error.code or ''}",
            error.param,
            error.response.headers,
        )
        raise teller.refused(refused, time.time()) from None
    except openai.APIConnectionError as error:
        why = f"{type(error.__cause__ or error).__name__}: {error.__cause__ or error}"
        raise (teller.broke_off if has_begun() else teller.unreachable)(why) from None
    except openai.APIError as error:
        refused = Refused(None, error.message, f"{error.type or ''} {error.code or ''}", error.param)
        raise teller.refused(refused, time.time()) from None
    except (httpx2.HTTPError, ValueError) as error:
        raise teller.broke_off(f"{type(error).__name__}: {error}") from None


def _said(error: openai.APIStatusError) -> str:
    """Return what the server said, without the SDK's frame where it can be told apart."""
    body: object = error.body
    said = cast("Mapping[str, object]", body).get("message") if isinstance(body, dict) else None
    return str(said or error.message)


@dataclass(frozen=True, slots=True)
class ChatAnswer:
    """What one chat completion came to."""

    texts: tuple[str, ...]
    stops: tuple[Stop, ...]
    model: str
    reported: CompletionUsage | None
    """None: the server sent no usage."""


@dataclass
class _Part:
    texts: list[str] = field(default_factory=list[str])
    refusals: list[str] = field(default_factory=list[str])
    reason: str | None = None


class ChatReading:
    """A chat completion being read off its stream."""

    def __init__(self, model: str) -> None:
        self.has_begun = False
        self._model = model
        self._parts: dict[int, _Part] = {}
        self._usage: CompletionUsage | None = None

    async def read(self, stream: AsyncIterable[ChatCompletionChunk]) -> ChatAnswer | None:
        """Return the answer, None when the stream ended before it."""
        async for chunk in stream:
            self.has_begun = True
            self._model = chunk.model or self._model
            self._usage = chunk.usage or self._usage
            for choice in chunk.choices:
                self._take(choice)
        parts = [self._parts[index] for index in sorted(self._parts)]
        if not parts or any(part.reason is None for part in parts):
            return None
        return ChatAnswer(
            texts=tuple("".join(part.refusals or part.texts) for part in parts),
            stops=tuple("refusal" if p.refusals else _STOPS.get(p.reason or "", "end") for p in parts),
            model=self._model,
            reported=self._usage,
        )

    def _take(self, choice: Choice) -> None:
        part = self._parts.setdefault(choice.index, _Part())
        part.reason = choice.finish_reason or part.reason
        if choice.delta.content:
            part.texts.append(choice.delta.content)
        if choice.delta.refusal:
            part.refusals.append(choice.delta.refusal)
        for call in choice.delta.tool_calls or []:
            if call.function is not None and call.function.arguments:
                part.texts.append(call.function.arguments)


def chat_usage(reported: CompletionUsage) -> Usage:
    """Return the usage that a server reported."""
    prompt, completion = reported.prompt_tokens_details, reported.completion_tokens_details
    return Usage(
        input_tokens=reported.prompt_tokens,
        cached_tokens=(prompt.cached_tokens or 0) if prompt is not None else 0,
        output_tokens=reported.completion_tokens,
        reasoning_tokens=(completion.reasoning_tokens or 0) if completion is not None else 0,
    )
