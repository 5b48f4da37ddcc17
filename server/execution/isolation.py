"""The processes a candidate has to itself: one per resettable server, opened on first use.

Each process is entered and left in a task of its own, since the connection's scopes belong to the
task that opened them while calls come from many.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field

import anyio
from anyio.abc import TaskGroup

from catalog.effects import Effect
from catalog.errors import CatalogError
from catalog.result import CallFailure, CallOutcome, FailureKind, RanUpstream
from server.execution.calls import CallRequest
from server.execution.servers import ServerProcess

__all__ = ["OpenServer", "OwnProcess", "OwnProcesses"]

_CALL_TIMEOUT_SECONDS = 60.0


OpenServer = Callable[[str], AbstractAsyncContextManager[ServerProcess]]


@dataclass(eq=False, slots=True)
class OwnProcess:
    """A process of one candidate: on its way up, up, or failed to start."""

    server: str
    ready: anyio.Event = field(default_factory=anyio.Event)
    process: ServerProcess | None = None
    problem: str = ""
    """Why it could not be started."""
    stateful_calls: int = 0
    """Calls that may have left something in the process."""

    async def call(self, request: CallRequest, effect: Effect) -> CallOutcome:
        """Return the outcome of one call, made once the process is up."""
        await self.ready.wait()
        if self.process is None:
            return CallFailure(FailureKind.SERVER_UNAVAILABLE, self.problem, 0.0, RanUpstream.NO)
        self.stateful_calls += effect is not Effect.PURE
        timeout_seconds = request.timeout_seconds or _CALL_TIMEOUT_SECONDS
        return await self.process.call(request.tool.tool, request.arguments, timeout_seconds=timeout_seconds)


class OwnProcesses:
    """Opens a candidate's processes in a task group, and keeps them until `close`."""

    def __init__(self, open_server: OpenServer, tasks: TaskGroup) -> None:
        self._open_server = open_server
        self._tasks = tasks
        self._by_server: dict[str, OwnProcess] = {}
        self._closing = anyio.Event()

    def of(self, server: str) -> OwnProcess:
        """Return the candidate's process of a server, starting it when there is none."""
        if server not in self._by_server:
            self._by_server[server] = self._start(server)
        return self._by_server[server]

    def renewed(self, failed: OwnProcess, effect: Effect) -> OwnProcess | None:
        """Return a fresh process in place of one that failed a call, or None.

        None when the failed process held what other calls of the candidate left there: a fresh one
        would answer as if they had never been.
        """
        current = self.of(failed.server)
        if current is not failed:
            return current
        if failed.stateful_calls > (effect is not Effect.PURE):
            return None
        fresh = self._by_server[failed.server] = self._start(failed.server)
        return fresh

    def close(self) -> None:
        """Let every process go; the task group waits until they are gone."""
        self._closing.set()

    def _start(self, server: str) -> OwnProcess:
        process = OwnProcess(server)
        self._tasks.start_soon(self._own, process, name=f"own process of {server}")
        return process

    async def _own(self, own: OwnProcess) -> None:
        try:
            async with self._open_server(own.server) as process:
                own.process = process
                own.ready.set()
                await self._closing.wait()
        except (CatalogError, ValueError) as error:  # ValueError: no such server is configured
            if own.process is not None:
                raise
            own.problem = str(error)
        finally:
            own.ready.set()
