"""Work that an answer need not wait for: done a moment after it, in order, and all of it at the end.

A relayed call is answered before its trace is written; writing it costs a fifth of what relaying
does. Whoever reads what such work writes calls `finish` first. A process that is killed in that
moment loses the work, as it would have lost the answer.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Final

import anyio

__all__ = ["Afterwards"]

_LOG = logging.getLogger(__name__)

_MOMENT_SECONDS: Final = 0.001
"""Long enough for an answer to be written, short against the time until its client asks again."""
_MOST_WAITING: Final = 256


class Afterwards:
    """A queue of small synchronous works. Without `attended` each is done at once."""

    def __init__(self) -> None:
        self._waiting: deque[Callable[[], None]] = deque()
        self._added: anyio.Event | None = None

    def do(self, work: Callable[[], None]) -> None:
        """Have this done soon; at once, with all that waits, when too much is waiting."""
        self._waiting.append(work)
        if self._added is None or len(self._waiting) >= _MOST_WAITING:
            self.finish()
        else:
            self._added.set()

    def finish(self) -> None:
        """Do now what is waiting. What fails is logged, since its answer was already given."""
        while self._waiting:
            work = self._waiting.popleft()
            try:
                work()
            except Exception:
                _LOG.exception("what was left to do after an answer failed")

    @asynccontextmanager
    async def attended(self) -> AsyncGenerator[None]:
        """Do works a moment after they are given, until left; by then all are done."""
        raised: Exception | None = None
        async with anyio.create_task_group() as tasks:
            self._added = anyio.Event()
            tasks.start_soon(self._attend)
            try:
                yield
            except Exception as error:  # raised again outside of the group, which would wrap it
                raised = error
            finally:
                self._added = None
                self.finish()
                tasks.cancel_scope.cancel()
        if raised is not None:
            raise raised

    async def _attend(self) -> None:
        while self._added is not None:
            await self._added.wait()
            self._added = anyio.Event()
            await anyio.sleep(_MOMENT_SECONDS)
            self.finish()
