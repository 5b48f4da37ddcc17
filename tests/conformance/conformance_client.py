"""The bank's own connections as the client that the suite drives: `python conformance_client.py URL`.

The scenario, its revision and what it gives come in variables of the environment. A server that wants a
login gets one as `skillbank login` does it, with a browser that follows where it is sent.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import httpx2
import mcp_types as types

from catalog.config import ServerSpec, load_config
from catalog.connections import Connections, open_connections
from catalog.era import Era
from catalog.errors import NEEDS_LOGIN, LoginFailed
from catalog.login import log_in
from catalog.result import CallFailure, CallOutcome
from catalog.secret_store import KeptSecrets
from catalog.tools import Snapshot, Tool

SCENARIO = os.environ["MCP_CONFORMANCE_SCENARIO"]
REVISION = os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION")
GIVEN: dict[str, Any] = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
CLIENT_DOCUMENT = "https://conformance-test.local/client-metadata.json"
NAME = "upstream"
MODERN = "2026-07-28"
LOGINS = 3
WAIT_SECONDS = 60.0


class Person:
    """Answers every question with what its form proposes."""

    log_level: types.LoggingLevel | None = None

    async def answer(self, server: str, asked: Mapping[str, types.InputRequest]) -> types.InputResponses:
        del server
        return {key: self._one(question) for key, question in asked.items()}

    async def log(self, server: str, said: types.LoggingMessageNotificationParams) -> None:
        del server, said

    def _one(self, question: types.InputRequest) -> types.InputResponse:
        match question:
            case types.ElicitRequest(params=types.ElicitRequestFormParams(requested_schema=schema)):
                return types.ElicitResult(action="accept", content=_filled(schema))
            case types.CreateMessageRequest():
                said = types.TextContent(type="text", text="x")
                return types.CreateMessageResult(role="assistant", model="none", content=said)
            case types.ListRootsRequest():
                return types.ListRootsResult(roots=[])
            case _:
                return types.ElicitResult(action="decline")


def _filled(schema: dict[str, Any]) -> dict[str, Any]:
    properties: dict[str, Any] = schema.get("properties", {})
    given = {name: part["default"] for name, part in properties.items() if "default" in part}
    blank = {name: _blank(properties.get(name, {})) for name in schema.get("required", [])}
    return {**blank, **given}


def _blank(schema: dict[str, Any]) -> Any:
    blanks = {"string": "x", "integer": 1, "number": 1, "boolean": True, "object": {}, "array": []}
    return schema["enum"][0] if schema.get("enum") else blanks.get(schema.get("type", ""))


def _arguments(tool: Tool) -> dict[str, Any]:
    schema: dict[str, Any] = dict(tool.input_schema)
    if tool.id.tool == "add_numbers":
        return {"a": 5, "b": 3}
    return {name: _blank(schema["properties"].get(name, {})) for name in schema.get("required", [])}


async def browse(url: str) -> None:
    """Go where a login sends a browser, and on where that sends it."""
    async with httpx2.AsyncClient(timeout=30, follow_redirects=False) as browser:
        answer = await browser.get(url)
        if (target := answer.headers.get("location")) is not None:
            await browser.get(target)


def config(url: str, folder: Path) -> Path:
    oauth: dict[str, Any] = {"clientMetadataUrl": CLIENT_DOCUMENT}
    if "client_id" in GIVEN:
        oauth = {"clientId": GIVEN["client_id"], "clientSecret": GIVEN.get("client_secret")}
    server = {"type": "http", "url": url, "oauth": {key: value for key, value in oauth.items() if value}}
    path = folder / "config.json"
    everything = ["elicitation", "sampling", "roots"]
    path.write_text(json.dumps({"mcpServers": {NAME: server}, "skillbank": {"forward": {NAME: everything}}}))
    return path


async def _listed(connections: Connections, spec: ServerSpec) -> Snapshot:
    """Return the tools; log in again where the server no longer knows the login."""
    for _ in range(LOGINS):
        tools = await connections.snapshot()
        (report,) = connections.reports()
        print(report.status, report.era, report.findings, file=sys.stderr)
        if report.status == "ready" or not any(NEEDS_LOGIN in found for found in report.findings):
            break
        await log_in(spec, browse, wait_seconds=WAIT_SECONDS)
    return tools


async def _called(
    connections: Connections, tool: Tool, arguments: dict[str, Any], spec: ServerSpec
) -> CallOutcome:
    """Call a tool; log in again where its server wants more than it was given."""
    for _ in range(LOGINS):
        outcome = await connections.call(tool.id, arguments, timeout_seconds=30, attendant=Person())
        if not (isinstance(outcome, CallFailure) and NEEDS_LOGIN in outcome.message):
            break
        await log_in(spec, browse, wait_seconds=WAIT_SECONDS)
    return outcome


async def main(url: str) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        secrets = KeptSecrets.beside(folder / "secrets")
        loaded = load_config(config(url, folder)).keeping(secrets)
        spec = loaded.servers[NAME]
        if SCENARIO.startswith("auth/"):
            print(await log_in(spec, browse, wait_seconds=WAIT_SECONDS), file=sys.stderr)
        eras: dict[str, Era] = {} if REVISION in (None, MODERN) else {NAME: "legacy"}
        async with open_connections(loaded, timeout_seconds=30, eras=eras) as connections:
            tools = await _listed(connections, spec)
            by_name = {tool.id.tool: tool for tool in tools}
            calls = [(by_name[c["name"]], c.get("arguments", {})) for c in GIVEN.get("toolCalls", [])]
            if SCENARIO == "json-schema-2020-12-preservation":
                schema = by_name["json_schema_2020_12_tool"].input_schema
                calls = [(by_name["json_schema_echo"], {"schema": schema})]
            for tool, arguments in calls or [(tool, _arguments(tool)) for tool in tools]:
                print(tool.id, await _called(connections, tool, arguments, spec), file=sys.stderr)


if __name__ == "__main__":
    logging.basicConfig(level=logging.ERROR)
    try:
        anyio.run(main, sys.argv[-1])
    except LoginFailed as error:
        sys.exit(f"not logged in: {error}")
