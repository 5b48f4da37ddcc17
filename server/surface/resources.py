"""What a client can read beside calling: tool servers, what our tools answer, values too large for a result.

`catalog://answers` has a JSON Schema for each always-there tool; `catalog://servers` and
`catalog://servers/{name}` are JSON; `trace://values/{digest}` is one value whole,
`trace://values/{digest}/{part}` a part of its text.
"""

from __future__ import annotations

import math
from urllib.parse import quote, unquote

import anyio.to_thread
import mcp.types as types
from pydantic import JsonValue

from server.reports import ServerReport
from server.surface.answers import ANSWERS
from server.surface.port import BankPort
from server.surface.sources import (
    FOR_EVER_MS,
    JSON_TYPE,
    Wanted,
    json_contents,
    json_resource,
    json_template,
    text_contents,
)

__all__ = ["PART_CHARACTERS", "CatalogResources", "value_link"]

PART_CHARACTERS = 500_000
"""Characters of one part of a large value; a part fits into what clients take over HTTP."""

_ANSWERS = "catalog://answers"
_SERVERS = "catalog://servers"
_VALUES = "trace://values"


class CatalogResources:
    """The tool servers and the large values of a bank, as resources."""

    def __init__(self, bank: BankPort) -> None:
        self._bank = bank

    def resources(self) -> list[types.Resource]:
        """Return the list of servers, and each server."""
        every = json_resource(
            _SERVERS,
            "servers",
            "Tool servers",
            "Every configured tool server: health, quarantined tools, problems, changes.",
        )
        answers = json_resource(
            _ANSWERS,
            "answers",
            "Answers of the tools",
            "JSON Schema of the structured content that each always-there tool answers.",
        )
        return [answers, every, *(_listed(server) for server in self._bank.servers())]

    def templates(self) -> list[types.ResourceTemplate]:
        """Return the templates of servers and values."""
        return _TEMPLATES

    async def read(self, uri: str) -> types.ReadResourceResult | None:
        """Return a server, all of them, or a large value whole or in part."""
        if uri == _ANSWERS:
            return json_contents(uri, {**ANSWERS}, ttl_ms=FOR_EVER_MS)
        if uri == _SERVERS:
            listed: list[JsonValue] = [server.model_dump(mode="json") for server in self._bank.servers()]
            return json_contents(uri, {"servers": listed})
        if (name := _after(f"{_SERVERS}/", uri)) is not None:
            return _server(self._bank, uri, unquote(name))
        if (wanted := _after(f"{_VALUES}/", uri)) is not None:
            digest, _, part = wanted.partition("/")
            return await _value(self._bank, uri, digest, part)
        return None

    def complete(self, wanted: Wanted) -> list[str] | None:
        """Return names of servers; digests cannot be guessed."""
        if not wanted.is_of(_TEMPLATES):
            return None
        return [server.name for server in self._bank.servers()] if wanted.argument == "name" else []


_TEMPLATES = [
    json_template(
        f"{_SERVERS}/{{name}}",
        "server",
        "One tool server with its usable tools and what each does to the world.",
    ),
    json_template(
        f"{_VALUES}/{{digest}}", "value", "A value that was too large for a result, whole, as JSON."
    ),
    types.ResourceTemplate(
        uri_template=f"{_VALUES}/{{digest}}/{{part}}",
        name="part of a value",
        description=f"Part 1, 2, … of a large value's JSON text, {PART_CHARACTERS} characters each.",
        mime_type="text/plain",
    ),
]


def _listed(server: ServerReport) -> types.Resource:
    return json_resource(
        _server_uri(server.name),
        f"server {server.name}",
        None,
        f"{server.name}: {server.status}, {server.tools} tools.",
    )


def value_link(digest: str, size: int) -> types.ResourceLink:
    """Return the link to a value that is kept under its digest.

    Args:
        digest: `sha256:…`.
        size: bytes of its JSON.
    """
    parts = math.ceil(size / PART_CHARACTERS)
    uri = f"{_VALUES}/{digest.removeprefix('sha256:')}"
    return types.ResourceLink(
        uri=uri,
        name="whole value",
        description=f"The whole value as JSON; {uri}/1 to at most {uri}/{parts} are parts of it.",
        mime_type=JSON_TYPE,
        size=size,
    )


def _server(bank: BankPort, uri: str, name: str) -> types.ReadResourceResult | None:
    server = next((server for server in bank.servers() if server.name == name), None)
    if server is None:
        return None
    tools: list[JsonValue] = [tool.model_dump(mode="json") for tool in bank.server_tools(name)]
    document = {**server.model_dump(mode="json"), "usable_tools": tools}
    return json_contents(uri, document)


async def _value(bank: BankPort, uri: str, digest: str, part: str) -> types.ReadResourceResult | None:
    if not (len(digest) == 64 and set(digest) <= set("0123456789abcdef")):
        return None
    try:
        content = await anyio.to_thread.run_sync(bank.kept_value, f"sha256:{digest}")
    except LookupError:
        return None
    text = content.decode()
    if not part:
        return text_contents(uri, text, ttl_ms=FOR_EVER_MS)
    if not part.isdecimal() or not 1 <= int(part) <= max(1, math.ceil(len(text) / PART_CHARACTERS)):
        return None
    start = (int(part) - 1) * PART_CHARACTERS
    part_text = text[start : start + PART_CHARACTERS]
    return text_contents(uri, part_text, "text/plain", ttl_ms=FOR_EVER_MS)


def _server_uri(name: str) -> str:
    return f"{_SERVERS}/{quote(name, safe='')}"


def _after(start: str, uri: str) -> str | None:
    return uri.removeprefix(start) if uri.startswith(start) and len(uri) > len(start) else None
