"""A rate that calls keep to."""

from __future__ import annotations

from dataclasses import dataclass

import anyio

__all__ = ["Pace"]


@dataclass
class Pace:
    """Lets so many calls through in a second, evenly."""

    calls_per_second: float
    _next: float = 0.0

    async def wait(self) -> None:
        """Wait until one more call keeps to the rate."""
        now = anyio.current_time()
        turn = max(now, self._next)
        self._next = turn + 1 / self.calls_per_second
        if turn > now:
            await anyio.sleep(turn - now)
