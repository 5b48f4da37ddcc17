"""Turns what a use case says while it works into progress notifications of one request.

The use case must not wait for a client, so only the latest moment is kept; every notification
that is sent has a greater value than the one before, as the protocol demands.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

import anyio

from server.progress import Progress

__all__ = ["ProgressFeed", "Report"]

Report = Callable[[float, float | None, str | None], Awaitable[None]]
"""Sends `(done, total or None, message)` to the client; does nothing when it did not ask."""

_STEP = 0.01
"""Growth that a moment without a finished call or candidate counts for."""


class ProgressFeed:
    """A `ProgressListener` whose moments go to whichever request is attached.

    Args:
        total: calls and candidates that are foreseen, None when nobody can tell.
    """

    def __init__(self, total: float | None = None) -> None:
        self._total = total
        self._done = 0.0
        self._latest: Progress | None = None
        self._changed = anyio.Event()
        self._begin: Callable[[], object] | None = None
        """Starts what sends to the attached request; None while it runs or none is attached."""

    def __call__(self, progress: Progress, /) -> None:
        """Keep the moment for the next notification."""
        self._latest = progress
        self._changed.set()
        if self._begin is not None:
            self._begin()
            self._begin = None

    @asynccontextmanager
    async def attached(self, report: Report) -> AsyncGenerator[None]:
        """Send what comes to this request as long as the context lasts, the last moment included."""
        async with anyio.create_task_group() as sending:
            self._begin = lambda: sending.start_soon(self._send_all, report)
            if self._latest is not None:
                self(self._latest)
            try:
                yield
            finally:
                is_sending, self._begin = self._begin is None, None
            if is_sending:
                sending.cancel_scope.cancel()
        await self._send_latest(report)

    async def _send_all(self, report: Report) -> None:
        while True:
            await self._changed.wait()
            self._changed = anyio.Event()
            await self._send_latest(report)

    async def _send_latest(self, report: Report) -> None:
        moment, self._latest = self._latest, None
        if moment is None:
            return
        self._done = max(self._done + _STEP, float(moment.calls + moment.candidates))
        total = None if self._total is None else max(self._total, self._done)
        await report(self._done, total, f"{moment.stage}: {moment.message}{_of_search(moment)}")


def _of_search(moment: Progress) -> str:
    """Return where a search stands, empty outside of one."""
    numbers = [
        f"best {moment.best:.2f}" if moment.best is not None else "",
        f"{moment.faults_left} faults left" if moment.faults_left else "",
        f"generation {moment.generation}" if moment.generation is not None else "",
        f"intensity {moment.intensity:.2f}" if moment.intensity is not None else "",
    ]
    said = ", ".join(number for number in numbers if number)
    return f" ({said})" if said else ""
