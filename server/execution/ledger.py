"""The ledger of calls that may happen at most once in an episode.

A call that is not free, on a server nothing resets, belongs to one node of the episode's first
plan. Each such node holds one token of its tool; a call takes a token, and gives it back only when
the upstream provably refused it before any effect. Whether a person or the config consents, and
what the policy says, is `server.execution.episode`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

from catalog.canonical import digest
from catalog.result import CallOutcome, CallSuccess, FailureKind, RanUpstream
from catalog.tools import ToolId
from server.execution.calls import CallRequest

__all__ = ["CallBook", "Ledger", "PlannedOnce", "Recorded", "Reservation", "Restored", "has_run"]

_EARLIER = 0
"""Stands for the candidates of an earlier episode; those of this one are numbered from 1."""
_AMBIGUOUS = frozenset({FailureKind.TIMEOUT, FailureKind.SERVER_UNAVAILABLE})


@dataclass(frozen=True, slots=True)
class PlannedOnce:
    """A node of the base plan that calls a tool; `is_mapped` when it does so once per item."""

    node: str
    tool: ToolId
    is_mapped: bool = False


@dataclass(frozen=True, slots=True)
class Recorded:
    """A call that ran, or may have."""

    candidate: int
    items: tuple[int, ...]
    outcome: CallOutcome

    @property
    def is_known(self) -> bool:
        """Whether what came of it is known, so that it can stand in for an equal call."""
        return isinstance(self.outcome, CallSuccess) or self.outcome.kind not in _AMBIGUOUS


@dataclass(slots=True)
class _Token:
    """Leave to call a tool once, or once per item of one node in one candidate."""

    planned: PlannedOnce | None
    """None: granted by consent to a tool that the base plan does not call."""
    holder: tuple[int, str] | None = None
    """Candidate and node that took it."""
    taken: set[tuple[int, ...]] = field(default_factory=set[tuple[int, ...]])
    """Items for which a call runs or may have run."""


@dataclass(frozen=True, slots=True)
class Restored:
    """A call of an earlier episode that this one goes on from: it ran, or may have."""

    node: str
    tool: ToolId
    arguments: str
    """Digest."""
    items: tuple[int, ...]
    outcome: CallOutcome


class CallBook(Protocol):
    """Keeps, beyond the process, which calls that happen once were sent."""

    def begun(self, request: CallRequest) -> None:
        """Keep that a call is about to be sent; it is sent only when this returned."""
        ...

    def ended_call(self, request: CallRequest, outcome: CallOutcome) -> None:
        """Keep what came of it."""
        ...


@dataclass(frozen=True, slots=True)
class Reservation:
    """A token taken for one call."""

    token: _Token
    items: tuple[int, ...]


class Ledger:
    """What has run in one episode, and what still may."""

    def __init__(self) -> None:
        self._tokens: dict[ToolId, list[_Token]] = defaultdict(list)
        self._recorded: dict[tuple[str, ToolId, str], list[Recorded]] = defaultdict(list)

    def plan(self, calls: Iterable[PlannedOnce]) -> None:
        """Give each node of the base plan its token.

        A tool that the plan does not call has a single one, taken only with consent.
        """
        for call in calls:
            self._tokens[call.tool].append(_Token(call))

    def recorded(self, request: CallRequest, candidate: int) -> Recorded | None:
        """Return what became of the same node, tool and arguments, if it ran.

        Two items of one mapped node with equal arguments are two calls while they belong to the
        same candidate.
        """
        records = self._recorded.get(_key(request), [])
        same_item = (record for record in records if record.items == request.items)
        earlier = (record for record in records if record.candidate != candidate)
        return next(same_item, None) or next(earlier, None)

    def reserve(self, request: CallRequest, candidate: int) -> Reservation | None:
        """Take leave to make one call, or return None when there is none left."""
        tokens = self._tokens[request.tool]
        if not tokens:
            tokens.append(_Token(None))
        token = _takeable(tokens, request, candidate)
        if token is None:
            return None
        token.holder = (candidate, request.node)
        token.taken.add(request.items)
        return Reservation(token, request.items)

    def grant(self, request: CallRequest, candidate: int) -> Reservation:
        """Return leave for a call that happens whatever was planned: a client's own."""
        token = _Token(None, (candidate, request.node), {request.items})
        self._tokens[request.tool].append(token)
        return Reservation(token, request.items)

    def release(self, reservation: Reservation) -> None:
        """Give back a token whose call was not made, or was refused before any effect."""
        token = reservation.token
        token.taken.discard(reservation.items)
        if not token.taken:
            token.holder = None

    def record(self, request: CallRequest, candidate: int, outcome: CallOutcome) -> None:
        """Keep what became of a call that ran, or may have."""
        self._recorded[_key(request)].append(Recorded(candidate, request.items, outcome))

    def restore(self, call: Restored) -> None:
        """Take up a call of an earlier episode: it holds its token, and its answer stands in for it."""
        item = call.items[-1] if call.items else None
        request = CallRequest(call.node, item, call.tool, {}, items=call.items)
        if self.reserve(request, _EARLIER) is None:
            self.grant(request, _EARLIER)
        recorded = Recorded(_EARLIER, call.items, call.outcome)
        self._recorded[call.node, call.tool, call.arguments].append(recorded)


def has_run(outcome: CallOutcome) -> bool:
    """Return whether a call had its effect, or may have had."""
    return isinstance(outcome, CallSuccess) or outcome.ran is not RanUpstream.NO


def _key(request: CallRequest) -> tuple[str, ToolId, str]:
    return (request.node, request.tool, digest(request.arguments))


def _takeable(tokens: list[_Token], request: CallRequest, candidate: int) -> _Token | None:
    """Return the token a call may take: that of its own map, its own node's, or an unplanned one.

    What another node of the plan may do once is never spent by a node that was put in.
    """
    held = [token for token in tokens if token.holder is not None and token.holder[1] == request.node]
    if held:
        return next((token for token in held if _covers(token, request, candidate)), None)
    free = [token for token in tokens if token.holder is None]
    own = (token for token in free if token.planned is not None and token.planned.node == request.node)
    unplanned = (token for token in free if token.planned is None)
    return next(own, next(unplanned, None))


def _covers(token: _Token, request: CallRequest, candidate: int) -> bool:
    """Whether a token that its node holds already is good for one more item of the same map."""
    planned = token.planned
    return (
        planned is not None
        and planned.is_mapped
        and planned.node == request.node
        and token.holder == (candidate, request.node)
        and request.items not in token.taken
    )
