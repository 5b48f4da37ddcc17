"""Stands behind a relayed call: puts what a trusted upstream asks to the client, with its origin.

A call of 2026-07-28 is answered with all questions at once and goes on with the answers; a
handshake-era session is asked in the middle of the call, one question after another. The client is
asked only for what it declared.
"""

from __future__ import annotations

import warnings
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TypeGuard, assert_never

import mcp.types as types
from mcp import MCPDeprecationWarning, MCPError
from mcp.server.session import ServerSession

from catalog.canonical import digest
from catalog.forwarding import NotAnswered
from catalog.plain_text import plain_text
from server.surface.suspension import Answers, Ask, Questions

__all__ = ["ORIGIN_META_KEY", "ClientBehind", "asking_session", "can_answer", "no_answers"]

ORIGIN_META_KEY = "io.skillbank/origin"
"""Key in the `_meta` of a forwarded question: the tool server that asks."""
_LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
_MOST_CHARACTERS = 4_000

SendLog = Callable[[types.LoggingMessageNotificationParams], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class ClientBehind:
    """The client behind one call, as `catalog.forwarding.Attendant`."""

    capabilities: types.ClientCapabilities | None
    ask: Ask
    log_level: types.LoggingLevel | None
    send_log: SendLog

    async def answer(self, server: str, asked: Mapping[str, types.InputRequest]) -> types.InputResponses:
        """Put those questions to the client that it can answer.

        Raises:
            NotAnswered: it can answer none of them, or refused.
        """
        possible = {
            key: _marked(it, server) for key, it in asked.items() if can_answer(self.capabilities, it)
        }
        if not possible:
            raise NotAnswered(_lacking(asked, server))
        identity = digest(
            {key: it.model_dump(mode="json", exclude={"id", "jsonrpc"}) for key, it in possible.items()}
        )
        answers = await self.ask(Questions(possible, identity))
        return {key: given for key in possible if _is_response(given := answers.get(key))}

    async def log(self, server: str, said: types.LoggingMessageNotificationParams) -> None:
        """Tell the client what a server logs, if it wants messages of that level."""
        if self.log_level is None or _LEVELS.index(said.level) < _LEVELS.index(self.log_level):
            return
        named = f"{server}/{said.logger}" if said.logger else server
        await self.send_log(said.model_copy(update={"logger": named}))


def can_answer(capabilities: types.ClientCapabilities | None, asked: types.InputRequest) -> bool:
    """Return whether a client declared that it answers such a question."""
    if capabilities is None:
        return False
    match asked:
        case types.ElicitRequest(params=types.ElicitRequestURLParams()):
            return capabilities.elicitation is not None and capabilities.elicitation.url is not None
        case types.ElicitRequest():
            shown = capabilities.elicitation
            return shown is not None and (shown.form is not None or shown.url is None)
        case types.CreateMessageRequest():
            return capabilities.sampling is not None
        case types.ListRootsRequest():
            return capabilities.roots is not None
        case _:
            assert_never(asked)


async def no_answers(questions: Questions) -> Answers:
    """Return nothing: this client cannot be asked."""
    del questions
    return {}


def asking_session(session: ServerSession, request_id: types.RequestId | None) -> Ask:
    """Return how the client behind a handshake-era call is asked.

    What the client itself refuses raises `NotAnswered`.
    """

    async def ask(questions: Questions) -> Answers:
        try:
            return {key: await _pushed(session, request_id, it) for key, it in questions.requests.items()}
        except MCPError as error:
            raise NotAnswered(error) from error

    return ask


async def _pushed(
    session: ServerSession, request_id: types.RequestId | None, asked: types.InputRequest
) -> object:
    with warnings.catch_warnings():
        # Deprecated, and the only way that clients of the handshake era have.
        warnings.simplefilter("ignore", MCPDeprecationWarning)
        match asked:
            case types.ElicitRequest(params=types.ElicitRequestURLParams() as params):
                sent = session.elicit_url(
                    params.message, params.url, params.elicitation_id or "", related_request_id=request_id
                )
            case types.ElicitRequest(params=types.ElicitRequestFormParams() as params):
                sent = session.elicit_form(
                    params.message, params.requested_schema, related_request_id=request_id
                )
            case types.CreateMessageRequest(params=params):
                sent = session.create_message(  # pyright: ignore[reportDeprecated]
                    params.messages,
                    max_tokens=params.max_tokens,
                    system_prompt=params.system_prompt,
                    temperature=params.temperature,
                    stop_sequences=params.stop_sequences,
                    related_request_id=request_id,
                )
            case types.ListRootsRequest():
                sent = session.list_roots()  # pyright: ignore[reportDeprecated]
            case _:
                raise TypeError(f"no way to ask {type(asked).__name__}")
    return await sent


def _marked(asked: types.InputRequest, server: str) -> types.InputRequest:
    """Return a question that says which server asks it, in words and in `_meta`."""
    meta = {ORIGIN_META_KEY: server}
    match asked:
        case types.ElicitRequest(params=params):
            message = f"Tool server {server} asks: {plain_text(params.message, _MOST_CHARACTERS)}"
            changed = params.model_copy(update={"message": message, "meta": meta})
            return asked.model_copy(update={"params": changed})
        case types.CreateMessageRequest(params=params):
            origin = f"Tool server {server} asks for this text."
            system = f"{origin}\n\n{params.system_prompt}" if params.system_prompt else origin
            changed = params.model_copy(update={"system_prompt": system, "meta": meta})
            return asked.model_copy(update={"params": changed})
        case types.ListRootsRequest():
            return asked
        case _:
            assert_never(asked)


def _lacking(asked: Mapping[str, types.InputRequest], server: str) -> MCPError:
    needed: dict[str, dict[str, object]] = {}
    for it in asked.values():
        match it:
            case types.ElicitRequest(params=types.ElicitRequestURLParams()):
                needed["elicitation"] = {"url": {}}
            case types.ElicitRequest():
                needed["elicitation"] = {}
            case types.CreateMessageRequest():
                needed["sampling"] = {}
            case types.ListRootsRequest():
                needed["roots"] = {}
            case _:
                assert_never(it)
    return MCPError(
        types.MISSING_REQUIRED_CLIENT_CAPABILITY,
        f"Tool server {server} asks for what this client does not offer: {', '.join(sorted(needed))}",
        {"requiredCapabilities": needed},
    )


def _is_response(given: object) -> TypeGuard[types.InputResponse]:
    return isinstance(
        given,
        types.CreateMessageResult
        | types.CreateMessageResultWithTools
        | types.ListRootsResult
        | types.ElicitResult,
    )
