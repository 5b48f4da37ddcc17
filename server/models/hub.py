"""A file of weights from its hub over HTTP: what has arrived is kept, and the rest is asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import anyio
import httpx2

from server.models.errors import SourceUnusable, WrongContent
from server.models.known import KnownModel
from server.models.step import Report, Step

__all__ = ["download_from_hub"]

_TIMEOUT: Final = httpx2.Timeout(30.0, connect=5.0)
_ATTEMPTS: Final = 4
_PAUSE_SECONDS: Final = 0.5


async def download_from_hub(model: KnownModel, partial: Path, report: Report) -> None:
    """Complete a partial file with the bytes of a model; its hash is for the caller to check.

    A connection that breaks off is taken up again where it was, and given up when four in a row
    brought nothing.

    Raises:
        SourceUnusable: nobody answers, or not with this file; what has arrived stays.
        WrongContent: the hub's file has another size.
    """
    failures = 0
    async with httpx2.AsyncClient(timeout=_TIMEOUT, follow_redirects=True) as client:
        while (before := _size(partial)) < model.size_bytes:
            try:
                await _download_rest(client, model, partial, report)
                problem = "the answer broke off"
            except httpx2.RequestError as error:
                problem = str(error) or type(error).__name__
            if _size(partial) > before:
                failures = 0
                continue
            failures += 1
            if failures == _ATTEMPTS or before == 0:
                raise SourceUnusable(f"{_host(model)} cannot be reached: {problem}")
            await anyio.sleep(_PAUSE_SECONDS * failures)


async def _download_rest(
    client: httpx2.AsyncClient, model: KnownModel, partial: Path, report: Report
) -> None:
    have = _size(partial)
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
    async with client.stream("GET", model.url, headers=headers) as response:
        start = _start_of(response, model, have)
        with partial.open("r+b" if start else "wb") as file:
            file.seek(start)
            arrived = start
            async for chunk in response.aiter_bytes():
                file.write(chunk)
                arrived += len(chunk)
                report(Step(f"downloading {model.name} from {_host(model)}", arrived, model.size_bytes, "B"))
                if arrived > model.size_bytes:
                    raise WrongContent(f"{model.url} has more than the {model.size_bytes:,} bytes it should")


def _start_of(response: httpx2.Response, model: KnownModel, have: int) -> int:
    """Return where the bytes of a response belong in the file."""
    if response.status_code not in (200, 206):
        raise SourceUnusable(
            f"{model.url} answers {response.status_code} {response.reason_phrase}: "
            "the file may have been withdrawn"
        )
    start = have if response.status_code == 206 else 0
    length = response.headers.get("Content-Length", "")
    if length.isdigit() and start + int(length) != model.size_bytes:
        raise WrongContent(
            f"{model.url} has {start + int(length):,} bytes instead of {model.size_bytes:,}: "
            "something else answers there"
        )
    return start


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _host(model: KnownModel) -> str:
    return httpx2.URL(model.url).host
