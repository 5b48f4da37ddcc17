"""What a client can read beside calling: how the tool servers are, and values too large for a result.

`catalog://servers` and `catalog://servers/{name}` are JSON; `trace://values/{digest}` is one value whole,
`trace://values/{digest}/{part}` a part of its text.
"""

from __future__ import annotations

import json
import math
from urllib.parse import quote, unquote

import anyio.to_thread
import mcp.types as types
from mcp import MCPError
from pydantic import JsonValue

from server.surface.port import BankPort

__all__ = ["PART_CHARACTERS", "list_resources", "list_templates", "read_resource", "value_link"]

PART_CHARACTERS = 500_000
"""Characters of one part of a large value; a part fits into what clients take over HTTP."""

_JSON = "application/json"
_SERVERS = "catalog://servers"
_VALUES = "trace://values"


def list_resources(bank: BankPort) -> types.ListResourcesResult:
    """Return the resources with a fixed address, one for each server too."""
    every = types.Resource(
        uri=_SERVERS,
        name="servers",
        title="Tool servers",
        description="Every configured tool server: health, quarantined tools, problems, changes.",
        mime_type=_JSON,
    )
    each = [
        types.Resource(
            uri=_server_uri(server.name),
            name=f"server {server.name}",
            description=f"{server.name}: {server.status}, {server.tools} tools.",
            mime_type=_JSON,
        )
        for server in bank.servers()
    ]
    return types.ListResourcesResult(resources=[every, *each])


def list_templates() -> types.ListResourceTemplatesResult:
    """Return the templates of the other addresses."""
    return types.ListResourceTemplatesResult(
        resource_templates=[
            types.ResourceTemplate(
                uri_template=f"{_SERVERS}/{{name}}",
                name="server",
                description="One tool server with its usable tools and what each does to the world.",
                mime_type=_JSON,
            ),
            types.ResourceTemplate(
                uri_template=f"{_VALUES}/{{digest}}",
                name="value",
                description="A value that was too large for a result, whole, as JSON.",
                mime_type=_JSON,
            ),
            types.ResourceTemplate(
                uri_template=f"{_VALUES}/{{digest}}/{{part}}",
                name="part of a value",
                description=f"Part 1, 2, … of a large value's JSON text, {PART_CHARACTERS} characters each.",
                mime_type="text/plain",
            ),
        ]
    )


async def read_resource(bank: BankPort, uri: str) -> types.ReadResourceResult:
    """Return the contents of a resource.

    Raises:
        MCPError: there is none at this address.
    """
    if uri == _SERVERS:
        listed: list[JsonValue] = [server.model_dump(mode="json") for server in bank.servers()]
        return _contents(uri, json.dumps({"servers": listed}, ensure_ascii=False))
    if (name := _after(f"{_SERVERS}/", uri)) is not None:
        return _server(bank, uri, unquote(name))
    if (wanted := _after(f"{_VALUES}/", uri)) is not None:
        digest, _, part = wanted.partition("/")
        return await _value(bank, uri, digest, part)
    raise _missing(uri)


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
        mime_type=_JSON,
        size=size,
    )


def _server(bank: BankPort, uri: str, name: str) -> types.ReadResourceResult:
    server = next((server for server in bank.servers() if server.name == name), None)
    if server is None:
        raise _missing(uri)
    tools: list[JsonValue] = [tool.model_dump(mode="json") for tool in bank.server_tools(name)]
    document = {**server.model_dump(mode="json"), "usable_tools": tools}
    return _contents(uri, json.dumps(document, ensure_ascii=False))


async def _value(bank: BankPort, uri: str, digest: str, part: str) -> types.ReadResourceResult:
    if not (len(digest) == 64 and set(digest) <= set("0123456789abcdef")):
        raise _missing(uri)
    try:
        content = await anyio.to_thread.run_sync(bank.kept_value, f"sha256:{digest}")
    except LookupError as error:
        raise _missing(uri) from error
    text = content.decode()
    if not part:
        return _contents(uri, text)
    if not part.isdecimal() or not 1 <= int(part) <= max(1, math.ceil(len(text) / PART_CHARACTERS)):
        raise _missing(uri)
    start = (int(part) - 1) * PART_CHARACTERS
    return _contents(uri, text[start : start + PART_CHARACTERS], "text/plain")


def _server_uri(name: str) -> str:
    return f"{_SERVERS}/{quote(name, safe='')}"


def _after(start: str, uri: str) -> str | None:
    return uri.removeprefix(start) if uri.startswith(start) and len(uri) > len(start) else None


def _contents(uri: str, text: str, mime_type: str = _JSON) -> types.ReadResourceResult:
    contents = types.TextResourceContents(uri=uri, mime_type=mime_type, text=text)
    return types.ReadResourceResult(contents=[contents])


def _missing(uri: str) -> MCPError:
    return MCPError(
        types.INVALID_PARAMS, "Resource not found: resources/list has what there is", {"uri": uri}
    )
