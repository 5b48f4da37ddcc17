"""A bound on the answers that come over HTTP as one JSON body, which the client library reads whole."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

import httpx2

from catalog.call import OVER_BOUND

__all__ = ["bound_json_answers"]


class _TooLarge(httpx2.StreamError):
    """A body that goes on past the bound; the client library makes it the error of its request."""


class _Bounded(httpx2.AsyncByteStream):
    def __init__(self, source: httpx2.AsyncByteStream, max_bytes: int) -> None:
        self._source = source
        self._max_bytes = max_bytes

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._source:
            size += len(chunk)
            if size > self._max_bytes:
                raise _TooLarge(f"{OVER_BOUND} of {self._max_bytes / 2**20:g} MiB")
            yield chunk

    async def aclose(self) -> None:
        await self._source.aclose()


def bound_json_answers(max_bytes: int) -> Callable[[httpx2.Response], Awaitable[None]]:
    """Return a response hook that ends a JSON body past the bound; streams of events are bounded apart."""

    async def hook(response: httpx2.Response) -> None:
        is_json = response.headers.get("content-type", "").startswith("application/json")
        if is_json and isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = _Bounded(response.stream, max_bytes)

    return hook
