"""Messages handed to a child process, so that it is known of each whether it was.

A message counts as handed over once the system has taken all of it; one that the child can never
have read whole raises. Callers write in turn and wait where the child does not read.
"""

from __future__ import annotations

import os

import anyio
import mcp_types as types
from mcp.shared.message import SessionMessage

__all__ = ["ChildInput"]

_NOTICE_SECONDS = 0.05
"""How long a message that nobody waits for may be held up by a child that does not read."""


class ChildInput:
    """The writing end of a child's standard input.

    Args:
        descriptor: writing end of a pipe; closed by `aclose`.
    """

    def __init__(self, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor: int | None = descriptor
        self._turn = anyio.Lock(fast_acquire=True)
        self._waiting = bytearray()
        self._written = 0

    async def send(self, item: SessionMessage, /) -> None:
        """Hand over one message.

        Raises:
            BrokenResourceError: the child has closed its input and has not got the whole message.
            ClosedResourceError: this end was closed before that.
        """
        self._waiting += item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
        end = self._written + len(self._waiting)
        if isinstance(item.message, types.JSONRPCRequest):
            await self._write_up_to(end)
        else:
            with anyio.move_on_after(_NOTICE_SECONDS):
                await self._write_up_to(end)

    async def aclose(self) -> None:
        """Close the child's input; what it has not taken by now is lost. Closing twice is allowed."""
        if self._descriptor is not None:
            descriptor, self._descriptor = self._descriptor, None
            anyio.notify_closing(descriptor)
            os.close(descriptor)

    async def _write_up_to(self, end: int) -> None:
        async with self._turn:
            while self._written < end:
                if self._descriptor is None:
                    raise anyio.ClosedResourceError
                try:
                    taken = os.write(self._descriptor, self._waiting)
                except BlockingIOError:
                    await anyio.wait_writable(self._descriptor)
                except OSError as error:
                    raise anyio.BrokenResourceError from error
                else:
                    del self._waiting[:taken]
                    self._written += taken
