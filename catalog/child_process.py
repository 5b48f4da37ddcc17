"""A tool server as a child process: its three pipes, its noise, and its end.

The child runs in its own session and is stopped as a tree (`catalog.process_tree`): its input is
closed, and what has not left after a grace period is terminated, then killed; one that has not said
a message yet is terminated at once, since it may be far from reading the end of its input. Clients
wait two seconds for this program to leave, so the grace is shorter. Its messages are
bounded and buffered in linear time; lines that are no messages are counted and dropped; its error
output is kept as a short tail for error messages. POSIX only.
"""

from __future__ import annotations

import os
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final, TypeVar

import anyio
import mcp_types as types
from anyio.abc import ByteReceiveStream, Process
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage

from catalog.call import OVER_BOUND, TOO_LARGE
from catalog.child_input import ChildInput
from catalog.config import ServerSpec
from catalog.errors import ServerUnavailable
from catalog.failure_text import NOT_JSON_RPC
from catalog.messages import read_message
from catalog.plain_text import plain_text
from catalog.process_tree import MARK_VARIABLE, ProcessTree, new_mark
from catalog.wire import Streams

__all__ = ["ChildOutput", "LastWords", "open_process"]

_CHUNK_BYTES: Final = 256 * 1024
_TAIL_BYTES: Final = 8 * 1024
_EXIT_GRACE_SECONDS: Final = 1.0
_TERMINATE_GRACE_SECONDS: Final = 2.0
_POLL_SECONDS: Final = 0.01
_QUEUED_MESSAGES: Final = 256
_ID_NEAR_START = re.compile(rb'^\s*\{[^{\[]{0,80}?"id"\s*:\s*(\d{1,15})\s*[,}]')

_T = TypeVar("_T")
_Out = MemoryObjectSendStream[SessionMessage | Exception]


@dataclass
class LastWords:
    """What is known about an upstream process beside its messages."""

    stderr: bytes = b""
    """The tail of its error output."""
    noise: int = 0
    """Lines on its standard output that were no messages."""
    first_noise: str = ""
    too_large: bool = False
    """Whether it was stopped for a message over the bound."""
    exit_code: int | None = None

    def describe(self) -> str:
        """Return how the process ended, with its last words; empty when nothing is known."""
        said = plain_text(self.stderr.decode("utf-8", "replace")).splitlines()
        parts = [
            "a message was over the size bound" if self.too_large else "",
            f"the process exited with code {self.exit_code}" if self.exit_code is not None else "",
            f"its last words: {plain_text(' / '.join(said[-4:]), 500)}" if said else "",
        ]
        return "; ".join(part for part in parts if part)

    def problems(self) -> list[str]:
        """Return what is worth telling although the connection works."""
        if not self.noise:
            return []
        return [
            f"{self.noise} lines on its standard output were no messages, the first: {self.first_noise!r}"
        ]


@asynccontextmanager
async def open_process(spec: ServerSpec, words: LastWords, max_message_bytes: int) -> AsyncGenerator[Streams]:
    """Yield the message streams of a started server; its whole tree is gone when this is left."""
    child = await _start(spec)
    received, read = anyio.create_memory_object_stream[SessionMessage | Exception](_QUEUED_MESSAGES)
    output = ChildOutput(read)
    pipes = _Pipes(child, words, max_message_bytes, output)
    async with anyio.create_task_group() as group:
        group.start_soon(pipes.read_messages, received)
        group.start_soon(pipes.read_errors)
        try:
            yield output, child.input
        finally:
            with anyio.CancelScope(shield=True):
                read.close()
                await _stop(child, is_up=output.has_spoken)
                words.exit_code = child.process.returncode
            group.cancel_scope.cancel()
    for stream in (received, read):
        stream.close()


@dataclass(frozen=True, slots=True)
class _Child:
    """A started process, the pipe to its input, and what comes of it."""

    process: Process
    input: ChildInput
    tree: ProcessTree


async def _start(spec: ServerSpec) -> _Child:
    if not spec.command:
        raise ServerUnavailable(spec.name, "no command is configured")
    mark = new_mark()
    reading, writing = os.pipe()
    process: Process | None = None
    try:
        # Given up half-way, the process would run on with nobody who knows of it.
        with anyio.CancelScope(shield=True):
            process = await anyio.open_process(
                [spec.command, *spec.args],
                stdin=reading,
                cwd=spec.cwd,
                env=get_default_environment() | dict(spec.env) | {MARK_VARIABLE: mark},
                start_new_session=True,
            )
    except BaseException as error:
        os.close(writing)
        if not isinstance(error, OSError | ValueError):
            raise
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ServerUnavailable(spec.name, f"cannot start {spec.command!r}: {reason}") from error
    finally:
        os.close(reading)
    if process is None:
        raise RuntimeError("a shielded start was cut off")
    return _Child(process, ChildInput(writing), ProcessTree(process.pid, mark))


class ChildOutput:
    """The messages of a child process, but for those that somebody takes as they arrive."""

    def __init__(self, read: MemoryObjectReceiveStream[SessionMessage | Exception]) -> None:
        self.take: Callable[[SessionMessage], bool] | None = None
        """Takes a message or leaves it to `receive`, None: all are left."""
        self.has_spoken = False
        """Whether a message has come."""
        self._read = read

    def is_taken(self, message: SessionMessage) -> bool:
        """Offer a message to whoever takes some."""
        return self.take is not None and self.take(message)

    async def receive(self) -> SessionMessage | Exception:
        """Return the next message that nobody took.

        Raises:
            EndOfStream: the process says no more.
            ClosedResourceError: this end was closed.
        """
        return await self._read.receive()

    async def aclose(self) -> None:
        """Read no more. Closing twice is allowed."""
        await self._read.aclose()


class _Pipes:
    """What one child process says."""

    def __init__(self, child: _Child, words: LastWords, max_message_bytes: int, output: ChildOutput) -> None:
        self._output = output
        self._process = child.process
        self._tree = child.tree
        self._words = words
        self._max_message_bytes = max_message_bytes

    async def read_messages(self, received: _Out) -> None:
        lines = _Lines(_present(self._process.stdout), self._max_message_bytes)
        async with received:
            try:
                async for line in lines:
                    message = await self._parse(line)
                    self._output.has_spoken |= message is not None
                    if message is not None and not self._output.is_taken(message):
                        await received.send(message)
                if lines.overflowed is not None:
                    await self._refuse(lines.overflowed, received)
            except (anyio.ClosedResourceError, anyio.BrokenResourceError):
                pass  # the session or the process is gone, which closing `received` tells
        await _drain(_present(self._process.stdout))

    async def read_errors(self) -> None:
        stderr = _present(self._process.stderr)
        try:
            while True:
                self._words.stderr = (self._words.stderr + await stderr.receive())[-_TAIL_BYTES:]
        except (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
            pass  # it says no more

    async def _parse(self, line: bytes) -> SessionMessage | None:
        if not line.strip():
            return None
        if line.lstrip()[:1] == b"{":
            try:
                return SessionMessage(await read_message(line))
            except ValueError:
                if (request := _request_id(line)) is not None:
                    return _failed(request, types.PARSE_ERROR, NOT_JSON_RPC)
        self._words.noise += 1
        self._words.first_noise = self._words.first_noise or plain_text(
            line[:400].decode("utf-8", "replace"), 100
        )
        return None

    async def _refuse(self, head: bytes, received: _Out) -> None:
        """Stop a process whose message is over the bound, failing the call it answered if that is known."""
        self._words.too_large = True
        await self._tree.look()
        self._tree.kill()
        if (request := _request_id(head)) is not None:
            megabytes = self._max_message_bytes / 2**20
            failed = _failed(request, TOO_LARGE, f"{OVER_BOUND} of {megabytes:g} MiB")
            if not self._output.is_taken(failed):
                await received.send(failed)


class _Lines:
    """Lines of a byte stream, joined once each; ends at the first one over the bound."""

    def __init__(self, source: ByteReceiveStream, max_bytes: int) -> None:
        self._source = source
        self._max_bytes = max_bytes
        self.overflowed: bytes | None = None
        """The beginning of the line that was over the bound."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        pending: list[bytes] = []
        size = 0
        while True:
            try:
                chunk = await self._source.receive(_CHUNK_BYTES)
            except anyio.EndOfStream:
                return
            *complete, rest = chunk.split(b"\n")
            for part in complete:
                if size + len(part) > self._max_bytes:
                    self.overflowed = b"".join([*pending, part])[:200]
                    return
                yield b"".join([*pending, part])
                pending, size = [], 0
            pending.append(rest)
            size += len(rest)
            if size > self._max_bytes:
                self.overflowed = b"".join(pending)[:200]
                return


def _request_id(line: bytes) -> int | None:
    found = _ID_NEAR_START.match(line[:200])
    return int(found[1]) if found is not None else None


def _failed(request: int, code: int, message: str) -> SessionMessage:
    return SessionMessage(
        types.JSONRPCError(jsonrpc="2.0", id=request, error=types.ErrorData(code=code, message=message))
    )


def _present(pipe: _T | None) -> _T:
    if pipe is None:
        raise RuntimeError("the process was started without pipes")
    return pipe


async def _drain(stdout: ByteReceiveStream) -> None:
    """Take what a leaving process still writes, so that it does not block on a full pipe."""
    try:
        while True:
            await stdout.receive(_CHUNK_BYTES)
    except (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
        pass  # it says no more


async def _stop(child: _Child, *, is_up: bool) -> None:
    """Let the process leave by itself where it is up, then end whatever is left of its tree.

    The exit code is polled: `wait` also waits for the pipes, which a grandchild may hold open.
    """
    await child.tree.look()
    await child.input.aclose()
    if is_up:
        await _until(lambda: child.process.returncode is not None, _EXIT_GRACE_SECONDS)
    await child.tree.end()
    await _until(lambda: child.process.returncode is not None, _TERMINATE_GRACE_SECONDS)
    await child.process.aclose()


async def _until(holds: Callable[[], bool], seconds: float) -> None:
    deadline = anyio.current_time() + seconds
    while not holds() and anyio.current_time() < deadline:
        await anyio.sleep(_POLL_SECONDS)
