"""Asks the model of an MCP client (sampling), for a use case that plans with it.

Deprecated in the protocol, so small: text alone. A call of 2026-07-28 asks for all alternatives of a
request in one round; a handshake-era session is asked in the middle of the call, one after another.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Sequence

import mcp.types as types
from mcp import MCPDeprecationWarning, MCPError
from mcp.server.session import ServerSession

from catalog.canonical import digest
from server.backends.backend import Request, Stop
from server.backends.sampling import Lent, Sampler
from server.surface.suspension import Ask, Questions

__all__ = ["can_lend", "lending", "pushed"]

_LOG = logging.getLogger(__name__)


def can_lend(capabilities: types.ClientCapabilities | None) -> bool:
    """Return whether a client declared that it lends its model."""
    return capabilities is not None and capabilities.sampling is not None


def lending(ask: Ask) -> Sampler:
    """Return how the model behind a call of 2026-07-28 is asked: a generation of answers in one round."""

    async def sample(request: Request) -> Sequence[Lent]:
        params = _params(request)
        asked: dict[str, types.InputRequest] = {
            f"answer-{n + 1}": types.CreateMessageRequest(params=params) for n in range(request.n)
        }
        identity = digest({"n": request.n, "params": params.model_dump(mode="json")})
        answers = await ask(Questions(asked, identity))
        return [lent for key in asked if (lent := _lent(answers.get(key))) is not None]

    return sample


def pushed(session: ServerSession, request_id: types.RequestId | None) -> Sampler:
    """Return how the model behind a handshake-era call is asked."""

    async def sample(request: Request) -> Sequence[Lent]:
        params = _params(request)
        answers: list[Lent] = []
        for _ in range(request.n):
            with warnings.catch_warnings():
                # The one place where a deprecated call is made: older clients have no other way.
                warnings.simplefilter("ignore", MCPDeprecationWarning)
                asked = session.create_message(  # pyright: ignore[reportDeprecated]
                    params.messages,
                    max_tokens=params.max_tokens,
                    system_prompt=params.system_prompt,
                    temperature=params.temperature,
                    related_request_id=request_id,
                )
            try:
                lent = _lent(await asked)
            except MCPError as error:
                _LOG.warning("the client did not lend its model: %s", error)
                return answers
            if lent is not None:
                answers.append(lent)
        return answers

    return sample


def _params(request: Request) -> types.CreateMessageRequestParams:
    system = [message.text for message in request.messages if message.role == "system"]
    turns = [
        types.SamplingMessage(role=m.role, content=types.TextContent(type="text", text=m.text))
        for m in request.messages
        if m.role != "system"
    ]
    return types.CreateMessageRequestParams(
        messages=turns,
        system_prompt="\n\n".join(system) or None,
        max_tokens=request.max_output_tokens,
        temperature=request.temperature,
    )


def _lent(result: object) -> Lent | None:
    """Return the text of an answer; None where the client gave none."""
    if not isinstance(result, types.CreateMessageResult | types.CreateMessageResultWithTools):
        return None
    blocks = result.content if isinstance(result.content, list) else [result.content]
    texts = [block.text for block in blocks if isinstance(block, types.TextContent)]
    stop: Stop = "length" if result.stop_reason == "maxTokens" else "end"
    return Lent("".join(texts), result.model, stop) if texts else None
