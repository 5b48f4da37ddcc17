"""What an upstream may ask of whoever is behind a call, and how one call is led through its questions.

An upstream of the newer era answers a call with its questions and is called again with the answers;
one of the handshake era asks in the middle, over the connection, and its question belongs to a call
only while no other is under way there. Which servers may ask what is the operator's word; who is
asked, and how, is the attendant's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar, cast

import anyio
import mcp_types as types
from mcp import Client, MCPError
from mcp.shared.dispatcher import ProgressFnT
from opentelemetry import trace
from pydantic import JsonValue

from catalog.config.model import Forwarded
from catalog.direct_calls import DirectCalls

if TYPE_CHECKING:
    from collections.abc import Generator

__all__ = [
    "Attendant",
    "AttendedCall",
    "NotAnswered",
    "NotForwarded",
    "Switchboard",
    "Unhurried",
    "call_attended",
]

_C = TypeVar("_C", bound=Callable[..., Any])

MOST_ROUNDS: Final = 10
"""How often one call may come back with questions."""
_KINDS: Mapping[str, Forwarded] = {
    "elicitation/create": "elicitation",
    "sampling/createMessage": "sampling",
    "roots/list": "roots",
}


class NotForwarded(Exception):  # noqa: N818
    """An upstream asked for what is not passed on; the message says what would change that."""


class NotAnswered(Exception):  # noqa: N818
    """Whoever is behind a call cannot be asked this, or refused; `error` is what the client is told."""

    def __init__(self, error: MCPError) -> None:
        super().__init__(error.message)
        self.error = error


class Attendant(Protocol):
    """Whoever is behind one call."""

    @property
    def log_level(self) -> types.LoggingLevel | None:
        """The least level of log messages that are wanted, None: none are."""
        ...

    async def answer(self, server: str, asked: Mapping[str, types.InputRequest]) -> types.InputResponses:
        """Return the answers to what a server asks, by its keys; what was left unanswered is missing.

        Raises:
            NotAnswered: nothing can be asked, or it was refused.
        """
        ...

    async def log(self, server: str, said: types.LoggingMessageNotificationParams) -> None:
        """Take a log message of a server."""
        ...


@dataclass(frozen=True, slots=True)
class Unhurried:
    """An attendant whose time to answer does not count as the upstream's."""

    attendant: Attendant
    scope: anyio.CancelScope
    """Bounds the call."""

    @property
    def log_level(self) -> types.LoggingLevel | None:
        """As of the attendant."""
        return self.attendant.log_level

    async def answer(self, server: str, asked: Mapping[str, types.InputRequest]) -> types.InputResponses:
        """Stop the clock of the call while its attendant answers."""
        left = self.scope.deadline - anyio.current_time()
        self.scope.deadline = math.inf
        try:
            return await self.attendant.answer(server, asked)
        finally:
            self.scope.deadline = anyio.current_time() + left

    async def log(self, server: str, said: types.LoggingMessageNotificationParams) -> None:
        """Pass a log message on."""
        await self.attendant.log(server, said)


@dataclass(frozen=True, slots=True)
class AttendedCall:
    """One call of an upstream tool and who is behind it, None: nobody who could be asked."""

    tool: str
    arguments: dict[str, JsonValue]
    progress: ProgressFnT | None
    attendant: Attendant | None


@dataclass
class Switchboard:
    """The calls under way on one connection, as far as questions of its upstream concern them.

    Attributes:
        server: configured name of the upstream.
        allowed: what it may ask.
    """

    server: str
    allowed: frozenset[Forwarded]
    _attendants: list[Attendant | None] = field(default_factory=list["Attendant | None"])

    @contextmanager
    def attended(self, attendant: Attendant | None) -> Generator[None]:
        """Count a call as under way."""
        self._attendants.append(attendant)
        try:
            yield
        finally:
            self._attendants.remove(attendant)

    def offered(self, kind: Forwarded, callback: _C) -> _C | None:
        """Return a callback if its kind is allowed; giving it to a client promises the capability."""
        return callback if kind in self.allowed else None

    def check(self, asked: Mapping[str, types.InputRequest], attendant: Attendant | None) -> Attendant:
        """Return who is asked.

        Raises:
            NotForwarded: nobody is.
        """
        kinds = sorted({_KINDS[request.method] for request in asked.values()})
        if refused := [kind for kind in kinds if kind not in self.allowed]:
            raise NotForwarded(
                f"tool server {self.server} asks its client ({', '.join(refused)}), which is passed on only"
                f" for servers trusted with it: skillbank.forward.{self.server} in the configuration"
            )
        if attendant is None:
            raise NotForwarded(
                f"tool server {self.server} asks its client ({', '.join(kinds)}), and nobody is behind this"
                " call who could be asked: call the tool by itself"
            )
        return attendant

    def _sole(self) -> Attendant | None:
        return self._attendants[0] if len(self._attendants) == 1 else None

    async def elicit(
        self, context: object, params: types.ElicitRequestParams
    ) -> types.ElicitResult | types.ErrorData:
        del context
        asked = types.ElicitRequest(params=params)
        return cast("types.ElicitResult | types.ErrorData", await self._push(asked))

    async def sample(
        self, context: object, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult | types.ErrorData:
        """Ask the model behind the one call that this can belong to."""
        del context
        asked = types.CreateMessageRequest(params=params)
        return cast("types.CreateMessageResult | types.ErrorData", await self._push(asked))

    async def roots(self, context: object) -> types.ListRootsResult | types.ErrorData:
        """Ask for the folders behind the one call that this can belong to."""
        del context
        return cast("types.ListRootsResult | types.ErrorData", await self._push(types.ListRootsRequest()))

    async def _push(self, asked: types.InputRequest) -> object:
        attendant = self._sole()
        if attendant is None:
            return types.ErrorData(
                code=types.INVALID_REQUEST, message="It cannot be told whose call this question belongs to"
            )
        try:
            answered = await attendant.answer(self.server, {"asked": asked})
        except NotAnswered as refused:
            return refused.error.error
        if (answer := answered.get("asked")) is None:
            return types.ErrorData(code=types.INVALID_REQUEST, message="The question was not answered")
        return answer

    async def log(self, params: types.LoggingMessageNotificationParams) -> None:
        """Pass a log message on, if there is one call that it can belong to."""
        attendant = self._sole()
        if attendant is not None:
            await attendant.log(self.server, params)


async def call_attended(
    client: Client, call: AttendedCall, board: Switchboard, direct: DirectCalls | None = None
) -> types.CallToolResult:
    """Call a tool, put the questions that come back to its attendant, and return the result.

    Args:
        client: connected to the upstream.
        call: what is called, and who is behind it.
        board: the calls under way on the connection.
        direct: the shorter way, for a first round that asks for nothing; None: the connection has none.

    Raises:
        NotForwarded: it asked what is not passed on, or did not stop asking.
        NotAnswered: the attendant could not answer.
        MCPError: as the upstream answered.
    """
    responses: types.InputResponses | None = None
    state: str | None = None
    for number in range(MOST_ROUNDS):
        if number == 0 and direct is not None and direct.is_ready and not _is_recorded():
            params = {"name": call.tool, "arguments": call.arguments}
            answer = await direct.call(params, _meta(call, board), call.progress)
        else:
            answer = await _round(client, call, board, responses, state)
        if isinstance(answer, types.CallToolResult):
            return answer
        responses, state = {}, answer.request_state
        if asked := answer.input_requests:
            attendant = board.check(asked, call.attendant)
            responses = await attendant.answer(board.server, asked)
    raise NotForwarded(f"tool server {board.server} went on asking after {MOST_ROUNDS} rounds of answers")


def _is_recorded() -> bool:
    """Whether somebody reads spans: the client library has some of its own."""
    return trace.get_current_span().is_recording()


async def _round(
    client: Client,
    call: AttendedCall,
    board: Switchboard,
    responses: types.InputResponses | None,
    state: str | None,
) -> types.CallToolResult | types.InputRequiredResult:
    async def send() -> types.CallToolResult | types.InputRequiredResult:
        return await client.session.call_tool(
            call.tool,
            call.arguments,
            progress_callback=call.progress,
            input_responses=responses,
            request_state=state,
            meta=_meta(call, board),
            allow_input_required=True,
        )

    try:
        return await send()
    except MCPError as error:
        if error.code != types.HEADER_MISMATCH:
            raise
    await client.list_tools(cache_mode="bypass")  # its schema says by now which arguments are headers
    return await send()


def _meta(call: AttendedCall, board: Switchboard) -> Any:  # noqa: ANN401  (the library's own type is private)
    level = call.attendant.log_level if call.attendant is not None and "log" in board.allowed else None
    return None if level is None else {types.LOG_LEVEL_META_KEY: level}
