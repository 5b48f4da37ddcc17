"""Transports to upstream tool servers by what is configured: a child process, HTTP or SSE."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

import httpx2
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from catalog.child_process import LastWords, open_process
from catalog.config import ServerSpec
from catalog.credentials import open_auth
from catalog.errors import ServerUnavailable
from catalog.http_bound import bound_json_answers
from catalog.http_client import UpstreamClient
from catalog.wire import Streams

__all__ = ["MAX_MESSAGE_BYTES", "LastWords", "open_transport"]

MAX_MESSAGE_BYTES: Final = 64 * 1024 * 1024
_HTTP_TIMEOUT: Final = httpx2.Timeout(30.0, read=600.0)
_SSE_SILENCE_SECONDS: Final = 86_400.0


@asynccontextmanager
async def open_transport(
    spec: ServerSpec, words: LastWords, *, max_message_bytes: int = MAX_MESSAGE_BYTES
) -> AsyncGenerator[Streams]:
    """Yield the message streams of an expanded server, its process running or its client open.

    Args:
        spec: the server, placeholders filled.
        words: takes up what the process says beside its messages.
        max_message_bytes: bound of one message.

    Raises:
        ServerUnavailable: the process cannot be started.
    """
    if spec.transport == "stdio":
        async with open_process(spec, words, max_message_bytes) as streams:
            yield streams
    elif spec.url is None:
        raise ServerUnavailable(spec.name, f"{spec.transport} needs a url")
    elif spec.transport == "sse":
        headers = dict(spec.headers)
        async with sse_client(
            spec.url,
            headers=headers,
            timeout=30.0,
            sse_read_timeout=_SSE_SILENCE_SECONDS,
            auth=open_auth(spec),
        ) as streams:
            yield streams
    else:
        async with (
            UpstreamClient(
                headers=dict(spec.headers),
                timeout=_HTTP_TIMEOUT,
                auth=open_auth(spec),
                event_hooks={"response": [bound_json_answers(max_message_bytes)]},
            ) as client,
            streamable_http_client(
                spec.url, http_client=client, max_sse_event_size=max_message_bytes
            ) as streams,
        ):
            yield streams
