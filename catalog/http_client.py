"""The HTTP client to upstreams, which knows of a call whether it can have been received.

The protocol's client takes a refused connection for the end of everything that is under way. Here a
call whose own connection could not be made is answered as such, and no other is disturbed.
"""

from __future__ import annotations

import json
from typing import Any, Final, cast

import httpx2

from catalog.canonical import JsonValue

__all__ = ["NOT_DELIVERED", "UpstreamClient"]

NOT_DELIVERED: Final = -31_001
"""JSON-RPC code under which a call is answered that provably never reached its server."""


class UpstreamClient(httpx2.AsyncClient):
    """An HTTP client that answers a tool call itself where no connection could be made for it."""

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:  # noqa: ANN401
        """Send a request; raise as any client does for what is no tool call."""
        try:
            return await super().send(request, **options)
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            call = _called(request)
            if call is None:
                raise
            told: JsonValue = {"code": NOT_DELIVERED, "message": f"{type(error).__name__}: {error}"}
            return httpx2.Response(200, json={"jsonrpc": "2.0", "id": call, "error": told}, request=request)


def _called(request: httpx2.Request) -> int | str | None:
    """Return the id of the tool call that a request carries, None where it carries none."""
    if request.method != "POST":
        return None
    try:
        message = cast("JsonValue", json.loads(request.content))
    except (ValueError, httpx2.RequestNotRead):
        return None  # no message of the protocol
    match message:
        case {"method": "tools/call", "id": int() | str() as number}:
            return number
        case _:
            return None
