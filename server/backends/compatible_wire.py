"""The wire to any OpenAI-compatible server: llama.cpp, Ollama, vLLM, or a hosted one.

It speaks chat completions alone, since a schema is ignored elsewhere. What the server is and
enforces is `offers`; a schema that it refuses goes one form down, not lost.
"""

from __future__ import annotations

import functools
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import openai

from catalog.config import ModelSpec
from server.backends.access import Access
from server.backends.attempts import Attempts, Pacing, Setback, Spent
from server.backends.backend import Completion, Offer, Request, Stop, Usage
from server.backends.compatible_server import Address, Server
from server.backends.estimate import estimate_tokens, estimated_usage
from server.backends.failures import Teller
from server.backends.ladder import PLAIN, Form, Ladder
from server.backends.offers import FORMS, Found, Memory, form_fields, forms_of, probe
from server.backends.openai_client import ChatAnswer, ChatReading, chat_usage, make_client, setbacks
from server.backends.portable_schema import plain_schema

__all__ = ["CompatibleBackend", "open_compatible"]

_BLAMED = frozenset({400, 422, 500, 501})
"""Some servers fail on a schema instead of refusing it."""
_SEED_STEP = 100_003
"""Between requests for alternatives, so that those of neighbouring seeds differ."""
_OPTIONAL = frozenset({"temperature", "seed", "stream_options"})


@asynccontextmanager
async def open_compatible(
    spec: ModelSpec, access: Access, memory: Path | None = None, pacing: Pacing | None = None
) -> AsyncGenerator[CompatibleBackend]:
    """Open the wire to one model; leaving it closes its connections.

    Args:
        spec: the model; the only one of its server where it names none.
        access: its address, and a key where the server wants one.
        memory: file in which it is remembered what servers offer; None: for this process alone.
        pacing: None: the usual.
    """
    if access.url is None:
        raise ValueError(f"{spec} has no address")
    async with make_client(access) as client:
        yield CompatibleBackend(spec, access.url, client, Teller(str(spec), access), Memory(memory), pacing)


class CompatibleBackend:
    """One model of an OpenAI-compatible server. Made by `open_compatible`."""

    def __init__(
        self,
        spec: ModelSpec,
        url: str,
        client: openai.AsyncOpenAI,
        teller: Teller,
        memory: Memory,
        pacing: Pacing | None,
    ) -> None:
        self.name = str(spec)
        self._spec = spec
        self._place = url if spec.kind == "openai-compatible" else str(spec)
        self._client = client
        self._teller = teller
        self._memory = memory
        self._attempts = Attempts(self.name, pacing or Pacing())
        self._ladder = Ladder(_BLAMED)
        self._left_out: set[str] = set()
        self._most = 1_000
        self._address = Address(url, client, teller)
        self._server: Server | None = None
        self._form: Form | None = None
        self._looking = anyio.Lock()

    @property
    def samples(self) -> bool:
        """Whether the model takes a temperature, as far as it is known."""
        return "temperature" not in self._left_out

    @property
    def context_tokens(self) -> int | None:
        """Tokens of prompt and answer, as the server says."""
        return self._server.context_tokens if self._server is not None else None

    async def examine(self) -> Offer:
        """Return what the server is and what it enforces; its model is asked once, ever.

        Raises:
            BackendError: it cannot be reached or used.
        """
        server, form = await self._found()
        detail = form.name if server.kind == "unknown" else f"{form.name} ({server.kind})"
        return Offer(form.constraint, detail, server.context_tokens)

    async def complete(self, request: Request) -> Completion:
        """Return the model's answers.

        Raises:
            BackendError: nothing usable came.
        """
        started, spent = anyio.current_time(), Spent()
        work = functools.partial(self._answers, request, spent)
        answers, form = await self._attempts.within(request.deadline_seconds, work)
        texts = [text for answer in answers for text in answer.texts]
        stops: list[Stop] = [stop for answer in answers for stop in answer.stops]
        return Completion(
            texts=tuple(texts[: request.n]),
            stops=tuple(stops[: request.n]),
            model=answers[0].model,
            usage=sum([await self._usage(request, answer) for answer in answers], Usage()),
            seconds=anyio.current_time() - started,
            retries=spent.retries,
            constraint=form.constraint,
        )

    async def count_tokens(self, text: str) -> int:
        """Return how many tokens a text has, by the server's own tokenizer where it offers one."""
        counted = None if self._server is None else await self._address.count_tokens(self._server, text)
        return estimate_tokens(text) if counted is None else counted

    async def _found(self) -> tuple[Server, Form]:
        async with self._looking:
            if self._server is None:
                look = functools.partial(self._address.look, self._spec.model)
                run = functools.partial(self._attempts.run, look, Spent())
                self._server = await self._attempts.within(30.0, run)
                self._most = self._server.slots or self._most
            if self._form is None:
                self._form = await self._enforced(self._server)
            return self._server, self._form

    async def _enforced(self, server: Server) -> Form:
        known = self._memory.recall(self._place, server.model)
        if known is not None and known.kind == server.kind:
            return FORMS[known.form]

        async def ask(form: Form, request: Request) -> str | None:
            try:
                return (await self._in_one_form(request, 1, form, Spent())).texts[0]
            except Setback as setback:
                if form == PLAIN or not self._ladder.blames(setback):
                    raise
                return None

        form = await self._attempts.within(120.0, lambda: probe(server.kind, ask))
        self._memory.keep(self._place, server.model, Found(kind=server.kind, form=form.name))
        return form

    async def _answers(self, request: Request, spent: Spent) -> tuple[list[ChatAnswer], Form]:
        """Ask until there are as many answers as wanted; how many a server gives at once is learned."""
        server, strictest = await self._found()
        forms = forms_of(server.kind, strictest)
        answers: list[ChatAnswer] = []
        form = PLAIN
        while (missing := request.n - sum(len(answer.texts) for answer in answers)) > 0:
            wanted = min(missing, self._most)
            nth = request.n - missing
            answer, form = await self._ladder.descend(
                request.schema,
                forms,
                lambda form, wanted=wanted, nth=nth: self._in_one_form(request, wanted, form, spent, nth),
            )
            self._most = min(self._most, len(answer.texts)) if wanted > 1 else self._most
            answers.append(answer)
        return answers, form

    async def _in_one_form(
        self, request: Request, wanted: int, form: Form, spent: Spent, nth: int = 0
    ) -> ChatAnswer:
        while True:
            fields = self._fields(request, wanted, form, nth)
            try:
                return await self._attempts.run(
                    lambda fields=fields: self._attempt(fields, may_blame=form != PLAIN), spent
                )
            except Setback as setback:
                refused = setback.parameter
                if setback.status == 400 and refused in _OPTIONAL and refused in fields:
                    self._left_out.add(refused)
                elif wanted > 1 and self._ladder.blames(setback):
                    wanted = self._most = 1
                else:
                    raise

    def _fields(self, request: Request, wanted: int, form: Form, nth: int) -> dict[str, Any]:
        fields: dict[str, Any] = {
            "model": self._server.model if self._server is not None else self._spec.model,
            "messages": [{"role": message.role, "content": message.text} for message in request.messages],
            "max_tokens": request.max_output_tokens,
            "stream_options": {"include_usage": True},
            "temperature": request.temperature,
            "seed": None if request.seed is None else request.seed + nth * _SEED_STEP,
            "n": wanted if wanted > 1 else None,
        }
        kept = {
            key: value for key, value in fields.items() if value is not None and key not in self._left_out
        }
        if request.schema is None:
            return kept
        return kept | form_fields(form, request.schema_name, plain_schema(request.schema))

    async def _attempt(self, fields: dict[str, Any], *, may_blame: bool) -> ChatAnswer:
        reading = ChatReading(self._spec.model)
        try:
            with setbacks(self._teller, lambda: reading.has_begun):
                async with await self._client.chat.completions.create(**fields, stream=True) as stream:
                    answer = await reading.read(stream)
        except Setback as setback:
            if may_blame and setback.status == 500:
                setback.may_pass = False
            raise
        if answer is None:
            raise self._teller.broke_off("the stream ended early")
        return answer

    async def _usage(self, request: Request, answer: ChatAnswer) -> Usage:
        """Return the usage of an answer; some servers count one alternative of several, or nothing."""
        if answer.reported is None:
            return estimated_usage(request, answer.texts)
        usage = chat_usage(answer.reported)
        if len(answer.texts) == 1:
            return usage
        counted = sum([await self.count_tokens(text) for text in answer.texts])
        output = max(usage.output_tokens, counted)
        return Usage(
            usage.input_tokens, usage.cached_tokens, output, usage.reasoning_tokens, is_estimated=True
        )
