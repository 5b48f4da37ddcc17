"""The wire to OpenAI: Responses for one answer, chat completions for several of the same request.

Answers are streamed, so that one that breaks off is told from one that ends. A structured answer is
asked for as a strict schema, else as the arguments of a forced function. A field that the provider
names as refused by a model, such as the temperature, is left out from then on.
"""

from __future__ import annotations

import functools
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import openai
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseErrorEvent,
    ResponseFailedEvent,
    ResponseIncompleteEvent,
    ResponseStreamEvent,
)

from catalog.config import ModelSpec
from server.backends.access import Access
from server.backends.attempts import Attempts, Pacing, Setback, Spent
from server.backends.backend import Completion, Offer, Request, Usage
from server.backends.estimate import estimate_tokens, estimated_usage
from server.backends.failures import Refused, Teller
from server.backends.ladder import PLAIN, Form, Ladder
from server.backends.openai_client import ChatReading, chat_usage, make_client, setbacks
from server.backends.openai_shapes import (
    FUNCTION,
    STRICT,
    Answer,
    chat_fields,
    response_answer,
    responses_fields,
)
from server.backends.portable_schema import closed_schema, without_added_nulls
from server.backends.prices import cost_usd

__all__ = ["OpenAIBackend", "open_openai"]

_OPTIONAL = frozenset({"temperature", "seed", "prompt_cache_key", "store", "stream_options"})
"""Fields whose refusal loses nothing but themselves."""


@asynccontextmanager
async def open_openai(
    spec: ModelSpec, access: Access, pacing: Pacing | None = None
) -> AsyncGenerator[OpenAIBackend]:
    """Open the wire to one model; leaving it closes its connections.

    Raises:
        BackendMisconfigured: there is no key.
    """
    teller = Teller(str(spec), access)
    if access.key is None:
        raise teller.no_key()
    async with make_client(access) as client:
        yield OpenAIBackend(spec, client, teller, pacing or Pacing())


class OpenAIBackend:
    """One model of OpenAI. Made by `open_openai`."""

    context_tokens = None

    def __init__(self, spec: ModelSpec, client: openai.AsyncOpenAI, teller: Teller, pacing: Pacing) -> None:
        self.name = str(spec)
        self._model = spec.model
        self._client = client
        self._teller = teller
        self._attempts = Attempts(self.name, pacing)
        self._ladder = Ladder()
        self._left_out: set[str] = set()
        self._has_chat = True

    @property
    def samples(self) -> bool:
        """Whether the model takes a temperature, as far as it is known."""
        return "temperature" not in self._left_out

    async def complete(self, request: Request) -> Completion:
        """Return the model's answers.

        Raises:
            BackendError: nothing usable came.
        """
        started, spent = anyio.current_time(), Spent()
        work = functools.partial(self._answers, request, spent)
        answers, form = await self._attempts.within(request.deadline_seconds, work)
        usages = [answer.usage or estimated_usage(request, answer.texts) for answer in answers]
        costs = [
            cost_usd("openai", answer.model, usage, answer.written_tokens)
            for answer, usage in zip(answers, usages, strict=True)
        ]
        return Completion(
            texts=tuple(text for answer in answers for text in answer.texts),
            stops=tuple(stop for answer in answers for stop in answer.stops),
            model=answers[0].model,
            usage=sum(usages, Usage()),
            cost_usd=None if None in costs else sum(cost for cost in costs if cost is not None),
            seconds=anyio.current_time() - started,
            retries=spent.retries,
            constraint=form.constraint,
        )

    async def count_tokens(self, text: str) -> int:
        """Return an estimate: asking would be a request of its own."""
        return estimate_tokens(text)

    async def examine(self) -> Offer:
        """Return what the API offers, having asked it for the model, without generating anything.

        Raises:
            BackendError: key or model are refused, or nobody answers.
        """

        async def ask() -> None:
            with setbacks(self._teller, lambda: False):
                await self._client.models.retrieve(self._model)

        spent = Spent()
        await self._attempts.within(30.0, lambda: self._attempts.run(ask, spent))
        return Offer("schema", STRICT.name)

    async def _answers(self, request: Request, spent: Spent) -> tuple[list[Answer], Form]:
        if request.n > 1 and self._has_chat:
            try:
                answer, form = await self._in_form(request, spent, chat_fields, self._chat)
            except Setback as setback:
                if setback.status != 404:
                    raise
                self._has_chat = False  # some models answer Responses alone
            else:
                return [answer], form
        one = functools.partial(self._in_form, request, spent, responses_fields, self._respond)
        first, form = await one()
        others = await self._attempts.together([one] * (request.n - 1))
        return [first, *(answer for answer, _ in others)], form

    async def _in_form(
        self,
        request: Request,
        spent: Spent,
        fields_of: Callable[[Request, str, Form, Any], dict[str, Any]],
        attempt: Callable[[dict[str, Any]], Awaitable[Answer]],
    ) -> tuple[Answer, Form]:
        closed = None if request.schema is None else closed_schema(request.schema, all_required=True)
        forms = (FUNCTION, PLAIN) if closed is None else (STRICT, FUNCTION, PLAIN)

        async def ask(form: Form) -> Answer:
            fields = fields_of(request, self._model, form, closed)
            return await self._without_refused(fields, attempt, spent)

        answer, form = await self._ladder.descend(request.schema, forms, ask)
        if form == STRICT and request.schema is not None:
            texts = (
                text if stop == "refusal" else without_added_nulls(text, request.schema)
                for text, stop in zip(answer.texts, answer.stops, strict=True)
            )
            answer = Answer(tuple(texts), answer.stops, answer.model, answer.usage, answer.written_tokens)
        return answer, form

    async def _without_refused(
        self, fields: dict[str, Any], attempt: Callable[[dict[str, Any]], Awaitable[Answer]], spent: Spent
    ) -> Answer:
        while True:
            sent = {name: value for name, value in fields.items() if name not in self._left_out}
            try:
                return await self._attempts.run(functools.partial(attempt, sent), spent)
            except Setback as setback:
                refused = setback.parameter
                if setback.status != 400 or refused not in _OPTIONAL or refused not in sent:
                    raise
                self._left_out.add(refused)

    async def _respond(self, fields: dict[str, Any]) -> Answer:
        final: Response | None = None
        has_begun = False
        with setbacks(self._teller, lambda: has_begun):
            async with await self._client.responses.create(**fields, stream=True) as stream:
                async for event in stream:
                    has_begun = True
                    final = self._final(event) or final
        if final is None:
            raise self._teller.broke_off("the stream ended early")
        return response_answer(final)

    def _final(self, event: ResponseStreamEvent) -> Response | None:
        match event:
            case ResponseCompletedEvent(response=response) | ResponseIncompleteEvent(response=response):
                return response
            case ResponseFailedEvent(response=response):
                error = response.error
                message, code = (error.message, error.code) if error is not None else ("no reason given", "")
                raise self._teller.refused(Refused(None, message, code), 0.0)
            case ResponseErrorEvent(message=message, code=code, param=parameter):
                raise self._teller.refused(Refused(None, message, code or "", parameter), 0.0)
            case _:
                return None

    async def _chat(self, fields: dict[str, Any]) -> Answer:
        reading = ChatReading(self._model)
        with setbacks(self._teller, lambda: reading.has_begun):
            async with await self._client.chat.completions.create(**fields, stream=True) as stream:
                answer = await reading.read(stream)
        if answer is None:
            raise self._teller.broke_off("the stream ended early")
        usage = None if answer.reported is None else chat_usage(answer.reported)
        return Answer(answer.texts, answer.stops, answer.model, usage)
