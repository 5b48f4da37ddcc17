"""Standard input and output that are read and written in the event loop, and that nothing else has.

The library reads and writes them in threads: reading keeps a process alive until its client writes
again, and two changes of thread for each answer take a tenth of what relaying a call takes.
"""

from __future__ import annotations

import os
import select
import socket
import stat
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import contextmanager

import anyio

__all__ = ["Answers", "Lines", "private_streams"]

_CHUNK_BYTES = 65_536


@contextmanager
def private_streams() -> Generator[tuple[Lines, Answers]]:
    """Yield what stdin holds, line by line, and where answers go.

    Meanwhile stdin is empty for everything else, and what anything else prints goes to stderr.
    """
    write = _writer_of(1)
    with _private(0, os.devnull) as reading, _private(1, 2) as writing:
        yield Lines(reading), Answers(writing, write)


@contextmanager
def _private(standard: int, instead: str | int) -> Generator[int]:
    """Yield a descriptor for a standard stream, which is another file meanwhile."""
    other = os.open(instead, os.O_RDONLY) if isinstance(instead, str) else os.dup(instead)
    private = os.dup(standard)
    try:
        os.dup2(other, standard)
        yield private
    finally:
        os.dup2(private, standard)
        os.close(private)
        os.close(other)


class Lines:
    """Lines of a descriptor, read so that cancellation does not wait for the other side."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._is_ready = stat.S_ISREG(os.fstat(descriptor).st_mode) or _is_nothing(descriptor)

    async def __aiter__(self) -> AsyncIterator[str]:
        rest = b""
        while chunk := await self._read():
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                yield line.decode("utf-8", errors="replace")

    async def _read(self) -> bytes:
        if not self._is_ready:  # always readable, and the event loop refuses to wait for it
            await anyio.wait_readable(self._descriptor)
        return os.read(self._descriptor, _CHUNK_BYTES)


class Answers:
    """Writes text to a pipe or socket that may be full, and that others may share: it stays blocking."""

    def __init__(self, descriptor: int, write: Callable[[int, memoryview], int]) -> None:
        self._descriptor = descriptor
        self._write = write

    async def write(self, text: str) -> None:
        """Write all of it, waiting where the other side does not read.

        Raises:
            OSError: the other side is gone.
        """
        left = memoryview(text.encode())
        while left := self.write_now(left):
            await self.wait()

    def write_now(self, left: memoryview) -> memoryview:
        """Write what is taken without waiting, and return the rest.

        Raises:
            OSError: the other side is gone.
        """
        try:
            while left:
                left = left[self._write(self._descriptor, left) :]
        except BlockingIOError:
            pass  # the rest is the answer
        return left

    async def wait(self) -> None:
        """Wait until something more may be taken."""
        await anyio.wait_writable(self._descriptor)


def _writer_of(descriptor: int) -> Callable[[int, memoryview], int]:
    """Return what writes to this kind of file without waiting, as far as it has to be waited for at all."""
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISFIFO(mode):
        return _write_to_pipe
    return _write_to_socket if stat.S_ISSOCK(mode) and hasattr(socket, "MSG_DONTWAIT") else os.write


def _write_to_pipe(descriptor: int, left: memoryview) -> int:
    """Write as much as a pipe that can be written to takes for sure."""
    ready = select.poll()
    ready.register(descriptor, select.POLLOUT)
    if not ready.poll(0):
        raise BlockingIOError
    return os.write(descriptor, left[: select.PIPE_BUF])


def _write_to_socket(descriptor: int, left: memoryview) -> int:
    with socket.socket(fileno=os.dup(descriptor)) as other:
        return other.send(left, socket.MSG_DONTWAIT)


def _is_nothing(descriptor: int) -> bool:
    return os.path.samestat(os.fstat(descriptor), os.stat(os.devnull))
