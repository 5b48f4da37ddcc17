"""The protocol's messages on standard input and output, without a task between them and whoever serves.

The library has a task for each direction and hands every message over twice; a relayed call feels
each handing over. A message that is begun is written whole, whoever gives up meanwhile.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Self

import anyio
import mcp.types as types
from mcp.shared.message import SessionMessage

from server.surface.streams import Answers, private_streams

__all__ = ["MessagesIn", "MessagesOut", "open_stdio"]


@asynccontextmanager
async def open_stdio() -> AsyncGenerator[tuple[MessagesIn, MessagesOut]]:
    """Yield what a server reads and writes; on leaving, what was sent is written.

    Raises:
        OSError: nobody reads what is written any more.
    """
    broken: OSError | None = None
    with private_streams() as (lines, answers):
        outgoing = MessagesOut(answers)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(outgoing.write_held_back)
            yield MessagesIn(aiter(lines)), outgoing
            await outgoing.aclose()
        broken = outgoing.broken
    if broken is not None:
        raise broken


class _Entered:
    """What a stream that is closed on leaving has to say."""

    async def aclose(self) -> None:
        """Nothing is held open."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        await self.aclose()


class MessagesIn(_Entered):
    """Messages by line; what is no message arrives as the error that it is."""

    def __init__(self, lines: AsyncIterator[str]) -> None:
        self._lines = lines

    async def receive(self) -> SessionMessage | Exception:
        """Return the next message.

        Raises:
            EndOfStream: the other side has said all.
        """
        try:
            return await anext(self)
        except StopAsyncIteration:
            raise anyio.EndOfStream from None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        line = await anext(self._lines)
        try:
            return SessionMessage(types.jsonrpc_message_adapter.validate_json(line, by_name=False))
        except ValueError as error:
            return error


class MessagesOut(_Entered):
    """Writes messages; one that the other side does not take at once is written by a task of its own."""

    def __init__(self, answers: Answers) -> None:
        self.broken: OSError | None = None
        """Why nothing can be written any more, None while it can."""
        self._answers = answers
        self._held: deque[memoryview] = deque()
        self._closing = False
        self._more = anyio.Event()
        self._taken = anyio.Event()

    async def send(self, item: SessionMessage, /) -> None:
        """Write one message, waiting where the other side does not read.

        Raises:
            BrokenResourceError: the other side is gone.
            ClosedResourceError: it was closed before.
        """
        if self._closing:
            raise anyio.ClosedResourceError
        text = item.message.model_dump_json(by_alias=True, exclude_unset=True) + "\n"
        left = memoryview(text.encode())
        if not self._held and self.broken is None:
            left = self._write(left)
        if left and self.broken is None:
            self._held.append(left)
            self._more.set()
        while self._held and self.broken is None:
            await self._taken.wait()
        if self.broken is not None:
            raise anyio.BrokenResourceError from self.broken

    def _write(self, left: memoryview) -> memoryview:
        try:
            return self._answers.write_now(left)
        except OSError as error:
            self.broken = error
            return left

    async def write_held_back(self) -> None:
        """Write what was held back, until closed and nothing is."""
        while self.broken is None and not (self._closing and not self._held):
            if not self._held:
                await self._more.wait()
                self._more = anyio.Event()
                continue
            left = self._write(self._held.popleft())
            if left and self.broken is None:
                self._held.appendleft(left)
                await self._answers.wait()
            elif not self._held or self.broken is not None:
                self._taken.set()
                self._taken = anyio.Event()

    async def aclose(self) -> None:
        """Take no more messages; what was sent is still written. Closing twice is allowed."""
        self._closing = True
        self._more.set()
