"""Serve a scenario: `python -m catalog.testing SCENARIO.json`."""

from __future__ import annotations

import logging
import os
import sys
import time
from pathlib import Path
from typing import Any

import anyio
import uvicorn
from mcp.server.sse import SseServerTransport
from mcp.server.stdio import stdio_server
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route

from catalog.era import Era
from catalog.testing.defects import main as serve_defect
from catalog.testing.one_era import open_handshake_only, refuse_handshake
from catalog.testing.scenario import Scenario, scripted
from catalog.testing.scripted import OpenServer

__all__ = ["main"]


def main(arguments: list[str]) -> None:
    """Serve the scenario in the file that is named first, until the client leaves."""
    logging.basicConfig(level=logging.CRITICAL)
    scenario = Scenario.model_validate_json(Path(arguments[0]).read_bytes())
    if scenario.defect is not None:
        serve_defect([scenario.defect, *([str(scenario.log)] if scenario.log is not None else [])])
        return
    instance = scripted(scenario).open()
    time.sleep(scenario.start_seconds)
    match scenario.serve:
        case "stdio":
            anyio.run(_serve_stdio, instance, scenario.era_now())
        case "http":
            anyio.run(_serve_app, instance.server.streamable_http_app(), "/mcp", instance)
        case "sse":
            anyio.run(_serve_app, _sse_app(instance), "/sse", instance)


async def _serve_stdio(instance: OpenServer, era: Era | None) -> None:
    server = instance.server
    if era == "modern":
        refuse_handshake(server)
    async with anyio.create_task_group() as group:
        group.start_soon(_leave_when_vanished, instance)
        async with stdio_server() as (read, write):
            if era == "legacy":
                async with open_handshake_only(read, write) as sifted:
                    await server.run(sifted, write, server.create_initialization_options())
            else:
                await server.run(read, write, server.create_initialization_options())
        group.cancel_scope.cancel()


async def _serve_app(app: Starlette, path: str, instance: OpenServer) -> None:
    config = uvicorn.Config(app, host="127.0.0.1", port=0, log_level="critical", timeout_graceful_shutdown=1)
    socket = config.bind_socket()
    socket.listen()
    sys.stdout.write(f"http://127.0.0.1:{socket.getsockname()[1]}{path}\n")
    sys.stdout.flush()
    async with anyio.create_task_group() as group:
        group.start_soon(_leave_when_vanished, instance)
        await uvicorn.Server(config).serve(sockets=[socket])
        group.cancel_scope.cancel()


async def _leave_when_vanished(instance: OpenServer) -> None:
    await instance.vanished.wait()
    os._exit(7)


def _sse_app(instance: OpenServer) -> Starlette:
    transport = SseServerTransport("/messages/")

    async def connect(request: Request) -> Response:
        send: Any = request._send  # pyright: ignore[reportPrivateUsage]  (the transport needs the raw ASGI send)
        async with transport.connect_sse(request.scope, request.receive, send) as (read, write):
            await instance.server.run(read, write, instance.server.create_initialization_options())
        return Response()

    return Starlette(routes=[Route("/sse", connect), Mount("/messages/", app=transport.handle_post_message)])


if __name__ == "__main__":
    main(sys.argv[1:])
