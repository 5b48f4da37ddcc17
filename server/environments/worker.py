"""The process of one instance: started, asked, and ended with everything that came of it.

A worker that ends, hangs or talks nonsense fails its own instance and no other. Everything it started
goes with it, also what a killed worker left behind (`catalog.process_tree`).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import cast

import anyio
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream
from pydantic import JsonValue

from catalog.plain_text import plain_text
from catalog.process_tree import MARK_VARIABLE, ProcessTree, end_orphans, new_mark
from server.environments.errors import BadRequest, WorkerFailed
from server.environments.world import JsonObject

__all__ = ["Worker", "start_worker"]

_TAIL_BYTES = 4_096
_EXIT_SECONDS = 2.0


async def start_worker(
    command: Sequence[str], environment: dict[str, str], max_answer_bytes: int, group: anyio.abc.TaskGroup
) -> Worker:
    """Start a worker.

    Args:
        command: program and arguments.
        environment: variables it inherits.
        max_answer_bytes: one that says more at once has failed.
        group: runs what reads its error output.

    Raises:
        WorkerFailed: it cannot be started.
    """
    mark = new_mark()
    process: Process | None = None
    try:
        with anyio.CancelScope(shield=True):  # given up half-way, nobody would know of it
            process = await anyio.open_process(
                list(command), env={**environment, MARK_VARIABLE: mark}, start_new_session=True
            )
    except OSError as error:
        raise WorkerFailed(f"the instance's process cannot be started: {error}") from error
    if process is None:
        raise RuntimeError("a shielded start was cut off")
    worker = Worker(process, ProcessTree(process.pid, mark), max_answer_bytes)
    group.start_soon(worker.read_errors)
    return worker


class Worker:
    """One started worker. Requests come one at a time."""

    def __init__(self, process: Process, tree: ProcessTree, max_answer_bytes: int) -> None:
        self._process = process
        self._tree = tree
        self._max_answer_bytes = max_answer_bytes
        self._numbered = 0
        self._words = b""
        self._failure: str | None = None
        self._ending = anyio.Lock()
        self.is_gone = False
        if process.stdout is None or process.stdin is None:
            raise RuntimeError("a worker without pipes")
        self._answers = BufferedByteReceiveStream(process.stdout)
        self._input = process.stdin

    @property
    def pid(self) -> int:
        """Number of the process."""
        return self._process.pid

    @property
    def has_failed(self) -> bool:
        """Whether it can be asked no more."""
        return self._failure is not None or self._process.returncode is not None

    async def ask(self, operation: str, given: JsonObject, seconds: float) -> JsonObject:
        """Return the answer to a request.

        Raises:
            BadRequest: the world knows no such task.
            WorkerFailed: the process is gone or did not answer in time; it is ended.
        """
        if self._failure is not None:
            raise WorkerFailed(self._failure)
        self._numbered += 1
        request = {"id": self._numbered, "op": operation, "given": given}
        try:
            with anyio.fail_after(seconds):
                await self._input.send(json.dumps(request).encode() + b"\n")
                line = await self._answers.receive_until(b"\n", self._max_answer_bytes)
        except TimeoutError:
            raise await self._failed(f"no answer within {seconds:g} s") from None
        except anyio.DelimiterNotFound:
            raise await self._failed(f"an answer is over {self._max_answer_bytes} bytes") from None
        except (
            anyio.IncompleteRead,
            anyio.BrokenResourceError,
            anyio.ClosedResourceError,
            anyio.EndOfStream,
        ):
            raise await self._failed("") from None
        except BaseException:
            # Cut off between request and answer: the next answer would be taken for another's.
            with anyio.CancelScope(shield=True):
                await self._failed("a request was given up half-way")
            raise
        return _read(line, operation)

    async def _failed(self, why: str) -> WorkerFailed:
        """End it and return what to tell."""
        await self.end()
        code = self._process.returncode
        said = plain_text(self._words.decode("utf-8", "replace")).splitlines()
        parts = [
            why
            or (f"it was killed by signal {-code}" if code is not None and code < 0 else f"exit code {code}"),
            f"its last words: {plain_text(' / '.join(said[-3:]), 400)}" if said and not why else "",
        ]
        self._failure = (
            f"the process of this instance is gone ({'; '.join(part for part in parts if part)}): reset"
            " starts another; other instances are not affected"
        )
        return WorkerFailed(self._failure)

    async def notice(self) -> None:
        """Find the processes it has started by now, so that they end with it whatever becomes of it."""
        await self._tree.look()

    async def end(self) -> None:
        """End it with everything that came of it. Ending twice is allowed."""
        with anyio.CancelScope(shield=True):
            async with self._ending:
                await self._end()

    async def _end(self) -> None:
        if not self.is_gone:
            await self._tree.look()
            await self._input.aclose()
            with anyio.move_on_after(_EXIT_SECONDS):
                await self._process.wait()
            await self._tree.end()
            await self._process.aclose()
            await end_orphans()
            self.is_gone = True
        if self._failure is None:
            self._failure = "this instance was released: create another"

    async def read_errors(self) -> None:
        """Keep the tail of its error output."""
        if self._process.stderr is None:
            return
        try:
            while True:
                self._words = (self._words + await self._process.stderr.receive())[-_TAIL_BYTES:]
        except (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
            return  # it says no more


def _read(line: bytes, operation: str) -> JsonObject:
    try:
        answer = cast("JsonObject", json.loads(line))
    except ValueError as error:
        raise WorkerFailed(f"the instance's process answered what is no JSON: {error}") from error
    error = answer.get("error")
    if isinstance(error, dict):
        message = str(error.get("message"))
        if error.get("kind") == "not_found":
            raise BadRequest(message, code="NOT_FOUND", status=404)
        raise WorkerFailed(f"{operation} failed in the instance's world: {message}")
    found: JsonValue = answer.get("ok")
    if not isinstance(found, dict):
        raise WorkerFailed("the instance's process answered neither 'ok' nor 'error'")
    return found
