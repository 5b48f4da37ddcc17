"""Work that an answer need not wait for: done a moment after it, in order, and all of it at the end.

A relayed call is answered before its trace is written; writing it costs a fifth of what relaying
does. Whoever reads what such work writes calls `finish` first. A process that is killed in that
moment loses the work, as it would have lost the answer.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final

import anyio
from anyio.abc import TaskGroup

__all__ = ["Afterwards"]

_LOG = logging.getLogger(__name__)

_QUIET_SECONDS: Final = 0.005
"""So long nothing may be added before works are begun: calls that follow each other are not held up."""
_MOST_DELAY_SECONDS: Final = 0.25
"""Works are begun by then, however many are still added."""
_MOST_WAITING: Final = 256
_MOST_AT_THE_END_SECONDS: Final = 15.0
"""How long longer works are waited for when all is to end."""


class Afterwards:
    """A queue of small synchronous works, each done at once without `attended`, and longer works beside."""

    def __init__(self) -> None:
        self._waiting: deque[Callable[[], None]] = deque()
        self._added: anyio.Event | None = None
        self._longer: TaskGroup | None = None
        self._begun = 0
        self._idle: anyio.Event | None = None

    def do(self, work: Callable[[], None]) -> None:
        """Have this done soon; at once, with all that waits, when too much is waiting."""
        self._waiting.append(work)
        if self._added is None or len(self._waiting) >= _MOST_WAITING:
            self.finish()
        else:
            self._added.set()

    def start(self, work: Callable[[], Awaitable[None]]) -> bool:
        """Begin a longer work beside what is going on; False, and nothing is begun, when not attended.

        What fails is logged. When leaving, it is waited for a little, then ended.
        """
        if self._longer is None:
            return False
        self._begun += 1
        self._longer.start_soon(self._done, work)
        return True

    async def settled(self) -> None:
        """Wait until every longer work that was begun is done, and do what is waiting."""
        while self._begun:
            self._idle = self._idle or anyio.Event()
            await self._idle.wait()
        self.finish()

    def finish(self) -> None:
        """Do now what is waiting. What fails is logged, since its answer was already given."""
        while self._waiting:
            self._do_next()

    def _do_next(self) -> None:
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
                async with anyio.create_task_group() as longer:
                    self._longer = longer
                    try:
                        yield
                    except Exception as error:  # raised again outside of the groups, which would wrap it
                        raised = error
                        longer.cancel_scope.cancel()
                    finally:
                        self._longer = None
                        longer.cancel_scope.deadline = anyio.current_time() + _MOST_AT_THE_END_SECONDS
            finally:
                self._added = None
                self.finish()
                tasks.cancel_scope.cancel()
        if raised is not None:
            raise raised

    async def _done(self, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await _logged(work)
        finally:
            self._begun -= 1
            if not self._begun and self._idle is not None:
                self._idle.set()
                self._idle = None

    async def _attend(self) -> None:
        while self._added is not None:
            await self._added.wait()
            with anyio.move_on_after(_MOST_DELAY_SECONDS):
                await self._quiet()
            while self._waiting:
                self._do_next()
                await anyio.sleep(0)  # a call that came meanwhile waits for one work at most

    async def _quiet(self) -> None:
        """Wait until nothing was added for a moment."""
        while self._added is not None and self._added.is_set():
            self._added = anyio.Event()
            await anyio.sleep(_QUIET_SECONDS)


async def _logged(work: Callable[[], Awaitable[None]]) -> None:
    try:
        await work()
    except Exception:
        _LOG.exception("what was begun beside an answer failed")
