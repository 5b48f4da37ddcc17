"""Calls of an exploration: in a fresh process of the server, within budget and rate, whatever it answers.

A process that crashes or hangs is thrown away and another one started: it is observed, not
suffered. Every call asks the effect policy once more.
"""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field

import anyio
from pydantic import JsonValue

from catalog.connection import Connection
from catalog.connections import Connections
from catalog.effects import Reset
from catalog.errors import CatalogError
from catalog.result import CallFailure, CallOutcome, FailureKind, RanUpstream
from server.exploration.observation import Observation, Origin, Probe
from server.exploration.options import ExplorationOptions
from server.exploration.pace import Pace
from server.exploration.provenance import Provenance
from server.exploration.scope import ExplorationScope
from server.exploration.values import KnownValues
from server.planning.leaves import leaves_of_value

__all__ = ["BudgetSpent", "ExplorationSession", "open_session"]

_GONE = frozenset({FailureKind.TIMEOUT, FailureKind.SERVER_UNAVAILABLE})
_RESTARTS = 25
"""Processes lost in one exploration before it is given up: a server that dies at every call."""


class BudgetSpent(Exception):  # noqa: N818
    """The quota of calls is used up, or the server cannot be kept alive; `reason` says which."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class _LimitReached(Exception):  # noqa: N818
    """The share of the budget that one part may use is used up."""


@dataclass
class ExplorationSession:
    """Makes calls and keeps what came of them. Made by `open_session`."""

    connections: Connections
    scope: ExplorationScope
    options: ExplorationOptions
    listener: Callable[[Observation], None]
    observations: list[Observation] = field(default_factory=list[Observation])
    spent: int = 0
    """Calls made, those for checking tasks included."""
    cut: list[str] = field(default_factory=list[str])
    """Parts that ended since their share of the calls was used up."""
    lost: int = 0
    """Processes that crashed or hung."""
    number: int = 0
    """Of the process that is running."""
    _stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    _process: Connection | None = None
    _limit: float = math.inf
    _problems: list[str] = field(default_factory=list[str])
    """Of connections to processes that are gone."""
    known: KnownValues = field(init=False)
    """What is known of good values so far."""
    pace: Pace = field(init=False)
    """What every call waits for, also those that check tasks."""
    _provenance: Provenance = field(init=False)

    def __post_init__(self) -> None:
        self.known = KnownValues(self.options.seed, self.options.meanings)
        self.pace = Pace(self.options.calls_per_second)
        self._provenance = Provenance(self.known)

    @property
    def left(self) -> int:
        """Calls that the budget still has."""
        return max(0, self.options.budget_calls - self.spent)

    @property
    def problems(self) -> list[str]:
        """What was noticed of the connections to processes that answered, in words, each once."""
        process = self._process
        now = process.problems if process is not None and process.status == "ready" else []
        return list(dict.fromkeys([*self._problems, *now]))

    async def call(self, probe: Probe) -> Observation:
        """Make one call and return what came of it; a process it kills is replaced at the next call.

        Raises:
            BudgetSpent: no call is left, or too many processes were lost.
            PermissionError: the tool is not in the scope.
        """
        if not self.scope.allows(probe.tool.id.tool):
            raise PermissionError(f"{probe.tool.id} may not be explored")
        self.take(1)
        outcome = await self._answer(probe)
        traced = self._provenance.traced(probe)
        observation = Observation(len(self.observations), self.number, traced, outcome)
        self.observations.append(observation)
        self._provenance.learn(observation)
        if observation.failure is not None and observation.failure.kind in _GONE:
            self.lost += 1
            await self.renew()
        self.listener(observation)
        return observation

    def held(self, origin: Origin) -> JsonValue:
        """Return what stands now where a value came from: in the last answer of that tool, of this process.

        None where the running process has not answered such a call.
        """
        if self._process is None:
            return None
        tool = self.observations[origin.observation].probe.tool.id
        for observation in reversed(self.observations):
            if observation.session != self.number:
                return None
            if observation.succeeded and observation.probe.tool.id == tool:
                return next((v for p, v in _places(observation) if p == origin.pointer), None)
        return None

    def take(self, calls: int) -> None:
        """Count calls against the budget.

        Raises:
            BudgetSpent: it does not have so many.
        """
        if self.spent + calls > self.options.budget_calls:
            raise BudgetSpent(f"the budget of {self.options.budget_calls} calls is spent")
        if self.spent + calls > self._limit:
            raise _LimitReached
        if self.lost > _RESTARTS:
            raise BudgetSpent(f"{self.lost} processes of the server were lost")
        self.spent += calls

    @contextmanager
    def limited(self, calls: int, part: str = "") -> Generator[None]:
        """Let so many calls in all be made within the block; what is over ends the block, not the rest.

        A part that is cut short by it is named in `cut`.
        """
        before, self._limit = self._limit, min(self._limit, calls)
        try:
            yield
        except _LimitReached:
            self.cut.append(part)
        finally:
            self._limit = before

    async def renew(self) -> None:
        """Throw the running process away; the next call has a fresh one."""
        self._problems = self.problems
        stack, self._stack, self._process = self._stack, AsyncExitStack(), None
        await stack.aclose()

    async def _answer(self, probe: Probe) -> CallOutcome:
        await self.pace.wait()
        try:
            process = self._process or await self._start()
        except (CatalogError, ValueError) as error:
            return CallFailure(FailureKind.SERVER_UNAVAILABLE, str(error), 0.0, RanUpstream.NO)
        return await process.call(
            probe.tool.id.tool, dict(probe.arguments), timeout_seconds=self.options.call_timeout_seconds
        )

    async def _start(self) -> Connection:
        reset = Reset.PROCESS if self.scope.reset is Reset.NONE else self.scope.reset
        self.number += 1
        if not self.scope.is_stateless:
            self._provenance.forget()
        opened = self.connections.isolated(self.scope.server, reset)
        self._process = await self._stack.enter_async_context(opened)
        return self._process


def _places(observation: Observation) -> Iterator[tuple[str, JsonValue]]:
    return ((leaf.pointer, leaf.value) for leaf in leaves_of_value(observation.output))


@asynccontextmanager
async def open_session(
    connections: Connections,
    scope: ExplorationScope,
    options: ExplorationOptions,
    listener: Callable[[Observation], None] = lambda observation: None,  # noqa: ARG005
) -> AsyncGenerator[ExplorationSession]:
    """Yield a session without a process; the one it has at the end is gone when this is left."""
    session = ExplorationSession(connections, scope, options, listener)
    try:
        yield session
    finally:
        with anyio.CancelScope(shield=True):
            await session.renew()
