"""Weights over HTTP, from a hub on loopback that breaks off, refuses, or has something else."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from server.models.errors import SourceUnusable, WrongContent
from server.models.fetching import fetch_weights

pytestmark = pytest.mark.anyio


@dataclass
class Hub:
    """A web server with one file."""

    content: bytes
    status: int = 200
    breaks_off_after: list[int] = field(default_factory=list)
    """Bytes after which the connection is cut, one per request; whole answers afterwards."""
    ranges: list[str | None] = field(default_factory=list)
    """What each request asked for."""
    url: str = ""


@pytest.fixture
def hub(parts) -> Iterator[Hub]:
    served = Hub(b"".join(parts))

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self):
            asked = self.headers["Range"]
            served.ranges.append(asked)
            start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked else 0
            body = served.content[start:]
            self.send_response(206 if asked and served.status == 200 else served.status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: served.breaks_off_after.pop(0)] if served.breaks_off_after else body)
            self.close_connection = True

        def log_message(self, *_: Any):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    served.url = f"http://127.0.0.1:{server.server_port}/tiny.gguf"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield served
    server.shutdown()
    thread.join()
    server.server_close()


async def test_a_file_gets_its_name_when_its_hash_is_right(hub, tiny, host, steps):
    fetched = await fetch_weights(replace(tiny, url=hub.url), host, "hub", steps)
    assert fetched.origin == "hub"
    assert fetched.path.read_bytes() == hub.content
    assert [path.name for path in host.shelf.models.iterdir() if not path.name.endswith(".lock")] == [
        "tiny.gguf"
    ]
    assert steps.messages == ["downloading tiny from 127.0.0.1", "checking the SHA-256 of tiny"]
    assert (steps.told[-1].done, steps.told[-1].total) == (len(hub.content), len(hub.content))


async def test_a_connection_that_breaks_off_is_taken_up_where_it_was(hub, tiny, host, steps):
    hub.breaks_off_after = [10_000, 20_000]
    fetched = await fetch_weights(replace(tiny, url=hub.url), host, "hub", steps)
    assert fetched.path.read_bytes() == hub.content
    assert hub.ranges == [None, "bytes=10000-", "bytes=30000-"]


async def test_what_an_interrupted_run_left_is_not_downloaded_again(hub, tiny, host, steps):
    partial = host.shelf.models / ".tiny.gguf.part"
    partial.parent.mkdir(parents=True)
    partial.write_bytes(hub.content[:50_000])
    fetched = await fetch_weights(replace(tiny, url=hub.url), host, "hub", steps)
    assert fetched.path.read_bytes() == hub.content
    assert hub.ranges == ["bytes=50000-"]


async def test_a_file_that_is_here_is_checked_and_kept(hub, tiny, host, steps):
    model = replace(tiny, url=hub.url)
    await fetch_weights(model, host, "hub", steps)
    again = await fetch_weights(model, host, "hub", steps)
    assert again.origin == "kept"
    assert len(hub.ranges) == 1


async def test_a_damaged_file_is_fetched_again(hub, tiny, host, steps):
    damaged = host.shelf.path_of(tiny)
    damaged.parent.mkdir(parents=True)
    damaged.write_bytes(b"x" * tiny.size_bytes)
    fetched = await fetch_weights(replace(tiny, url=hub.url), host, "hub", steps)
    assert fetched.path.read_bytes() == hub.content
    assert "tiny.gguf is damaged: it is fetched again" in steps.messages


async def test_bytes_with_another_hash_are_removed_and_never_used(hub, tiny, host, steps):
    hub.content = hub.content[:-1] + b"?"
    with pytest.raises(WrongContent, match=f"should be {tiny.sha256}: the file was removed"):
        await fetch_weights(replace(tiny, url=hub.url), host, "hub", steps)
    assert [path.name for path in host.shelf.models.iterdir()] == [".tiny.gguf.lock"]


async def test_a_file_of_another_size_is_refused_before_it_is_downloaded(hub, tiny, host, steps):
    hub.content = b"<html>sign in to the network first</html>"
    with pytest.raises(WrongContent, match="has 41 bytes instead of"):
        await fetch_weights(replace(tiny, url=hub.url), host, "hub", steps)
    assert not host.shelf.has(tiny)


async def test_a_withdrawn_file_is_said_to_be(hub, tiny, host, steps):
    hub.status = 404
    with pytest.raises(SourceUnusable, match=r"answers 404 .*withdrawn; --from packages is the other way"):
        await fetch_weights(replace(tiny, url=hub.url), host, "hub", steps)


async def test_a_hub_nobody_answers_for_is_named(tiny, host, steps):
    with pytest.raises(SourceUnusable, match=r"^127\.0\.0\.1 cannot be reached"):
        await fetch_weights(tiny, host, "hub", steps)
