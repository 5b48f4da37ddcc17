"""The wire to Anthropic's Messages API.

Answers are streamed, so that one that breaks off is told from one that ends. A structured answer is
asked for as native structured output, else as the input of a forced tool. Everything but the last
message is marked as a cacheable prefix. This wire has no sampling parameters.
"""

from __future__ import annotations

import functools
import time
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any

import anthropic
import anyio
import httpx2
from anthropic.types import (
    InputJSONDelta,
    RawContentBlockDeltaEvent,
    RawMessageDeltaEvent,
    RawMessageStartEvent,
    RawMessageStopEvent,
    RawMessageStreamEvent,
    TextDelta,
)

from catalog.config import ModelSpec
from server.backends.access import Access
from server.backends.attempts import Attempts, Pacing, Spent
from server.backends.backend import Completion, Message, Offer, Request, Stop, Usage
from server.backends.estimate import estimate_tokens
from server.backends.failures import Refused, Teller
from server.backends.ladder import PLAIN, Form, Ladder
from server.backends.portable_schema import closed_schema
from server.backends.prices import cost_usd
from server.backends.thinking import output_limit

__all__ = ["AnthropicBackend", "open_anthropic"]

_NATIVE = Form("output_config json_schema", "schema")
_TOOL = Form("forced tool", "json")
_STOPS: dict[str, Stop] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
}
_NO_LIMIT_BUT_OURS = httpx2.Timeout(None, connect=10.0)
_CACHED = {"type": "ephemeral"}


@asynccontextmanager
async def open_anthropic(
    spec: ModelSpec, access: Access, pacing: Pacing | None = None
) -> AsyncGenerator[AnthropicBackend]:
    """Open the wire to one model; leaving it closes its connections.

    Raises:
        BackendMisconfigured: there is no key.
    """
    teller = Teller(str(spec), access)
    if access.key is None:
        raise teller.no_key()
    async with anthropic.AsyncAnthropic(
        api_key=access.key,
        base_url=access.url or "https://api.anthropic.com",
        max_retries=0,
        timeout=_NO_LIMIT_BUT_OURS,
    ) as client:
        yield AnthropicBackend(spec, client, teller, pacing or Pacing())


@dataclass(frozen=True, slots=True)
class _Answer:
    text: str
    stop: Stop
    model: str
    usage: Usage
    written_tokens: int


class AnthropicBackend:
    """One model of Anthropic. Made by `open_anthropic`."""

    samples = False

    def __init__(
        self, spec: ModelSpec, client: anthropic.AsyncAnthropic, teller: Teller, pacing: Pacing
    ) -> None:
        self.name = str(spec)
        self.context_tokens: int | None = None
        self._spec = spec
        self._client = client
        self._teller = teller
        self._attempts = Attempts(self.name, pacing)
        self._ladder = Ladder()

    async def complete(self, request: Request) -> Completion:
        """Return the model's answers: the first alone, so that the others find its prefix in the cache.

        Raises:
            BackendError: nothing usable came.
        """
        started, spent = anyio.current_time(), Spent()

        async def work() -> list[tuple[_Answer, Form]]:
            first = await self._one(request, spent)
            others = [functools.partial(self._one, request, spent)] * (request.n - 1)
            return [first, *await self._attempts.together(others)]

        answered = await self._attempts.within(request.deadline_seconds, work)
        answers = [answer for answer, _ in answered]
        costs = [cost_usd("anthropic", a.model, a.usage, a.written_tokens) for a in answers]
        return Completion(
            texts=tuple(answer.text for answer in answers),
            stops=tuple(answer.stop for answer in answers),
            model=answers[0].model,
            usage=sum((answer.usage for answer in answers), Usage()),
            cost_usd=None if None in costs else sum(cost for cost in costs if cost is not None),
            seconds=anyio.current_time() - started,
            retries=spent.retries,
            constraint=answered[-1][1].constraint,
        )

    async def count_tokens(self, text: str) -> int:
        """Return an estimate: asking would be a request of its own."""
        return estimate_tokens(text)

    async def examine(self) -> Offer:
        """Return what the API says of the model, without generating anything.

        Raises:
            BackendError: key or model are refused, or nobody answers.
        """

        async def ask() -> int | None:
            with self._setbacks(lambda: False):
                return (await self._client.models.retrieve(self._spec.model)).max_input_tokens

        spent = Spent()
        self.context_tokens = await self._attempts.within(30.0, lambda: self._attempts.run(ask, spent))
        return Offer("schema", _NATIVE.name, self.context_tokens)

    async def _one(self, request: Request, spent: Spent) -> tuple[_Answer, Form]:
        closed = None if request.schema is None else closed_schema(request.schema, all_required=False)
        forms = (_TOOL, PLAIN) if closed is None else (_NATIVE, _TOOL, PLAIN)

        async def ask(form: Form) -> _Answer:
            fields = _fields(request, self._spec.model) | _form_fields(form, request, closed)
            return await self._attempts.run(lambda: self._attempt(fields), spent)

        return await self._ladder.descend(request.schema, forms, ask)

    async def _attempt(self, fields: dict[str, Any]) -> _Answer:
        reading = _Reading(self._spec.model)
        with self._setbacks(lambda: reading.has_begun):
            async with await self._client.messages.create(**fields, stream=True) as stream:
                answer = await reading.read(stream)
        if answer is None:
            raise self._teller.broke_off("the stream ended early")
        return answer

    @contextmanager
    def _setbacks(self, has_begun: Callable[[], bool]) -> Generator[None]:
        """Turn the SDK's errors into setbacks."""
        try:
            yield
        except anthropic.APIStatusError as error:
            refused = Refused(
                status=error.status_code if error.status_code >= 400 else None,
                message=error.api_message or error.message,
                code=f"{error.type or ''} {error.error_code or ''}",
                headers=error.response.headers,
            )
            raise self._teller.refused(refused, time.time()) from None
        except (anthropic.APIError, httpx2.HTTPError, ValueError) as error:
            why = f"{type(error).__name__}: {error.__cause__ or error}"
            setback = self._teller.broke_off if has_begun() else self._teller.unreachable
            raise setback(why) from None


class _Reading:
    """An answer being read off its stream."""

    def __init__(self, model: str) -> None:
        self.has_begun = False
        self._model = model
        self._texts: list[str] = []
        self._stop: str | None = None
        self._is_whole = False
        self._input = self._written = self._cached = self._output = self._thinking = 0

    async def read(self, stream: AsyncIterable[RawMessageStreamEvent]) -> _Answer | None:
        """Return the answer, None when the stream ended before it."""
        async for event in stream:
            self.has_begun = True
            self._take(event)
        if not self._is_whole:
            return None
        usage = Usage(self._input + self._written + self._cached, self._cached, self._output, self._thinking)
        stop = _STOPS.get(self._stop or "", "end")
        return _Answer("".join(self._texts), stop, self._model, usage, self._written)

    def _take(self, event: RawMessageStreamEvent) -> None:
        match event:
            case RawMessageStartEvent(message=message):
                self._model, usage = message.model, message.usage
                self._input, self._output = usage.input_tokens, usage.output_tokens
                self._written = usage.cache_creation_input_tokens or 0
                self._cached = usage.cache_read_input_tokens or 0
            case RawContentBlockDeltaEvent(delta=TextDelta(text=text)):
                self._texts.append(text)
            case RawContentBlockDeltaEvent(delta=InputJSONDelta(partial_json=text)):
                self._texts.append(text)
            case RawMessageDeltaEvent(delta=delta, usage=usage):
                self._stop = delta.stop_reason
                self._output = usage.output_tokens
                details = usage.output_tokens_details
                self._thinking = details.thinking_tokens if details is not None else 0
            case RawMessageStopEvent():
                self._is_whole = True
            case _:
                pass


def _fields(request: Request, model: str) -> dict[str, Any]:
    """Return the body but for the form: the same bytes for the same prefix."""
    system = [message for message in request.messages if message.role == "system"]
    turns = [message for message in request.messages if message.role != "system"]
    if not turns:  # the API wants a turn of the user
        system, turns = system[:-1], [Message("user", system[-1].text)]
    blocks = [_block(message) for message in (*system, *turns)]
    if len(blocks) > 1:
        blocks[-2]["cache_control"] = _CACHED
    fields: dict[str, Any] = {
        "model": model,
        "max_tokens": output_limit(request.max_output_tokens),
        "messages": [
            {"role": turn.role, "content": [block]}
            for turn, block in zip(turns, blocks[len(system) :], strict=True)
        ],
    }
    return fields | ({"system": blocks[: len(system)]} if system else {})


def _block(message: Message) -> dict[str, Any]:
    return {"type": "text", "text": message.text}


def _form_fields(form: Form, request: Request, closed: dict[str, Any] | None) -> dict[str, Any]:
    if form == _NATIVE:
        return {"output_config": {"format": {"type": "json_schema", "schema": closed}}}
    if form == _TOOL:
        tool = {
            "name": request.schema_name,
            "description": "Give the answer by calling this tool once.",
            "input_schema": request.schema,
        }
        return {"tools": [tool], "tool_choice": {"type": "tool", "name": request.schema_name}}
    return {}
