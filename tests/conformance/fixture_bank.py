"""The real server in front of the fixture's tools, over HTTP: `python fixture_bank.py FOLDER`.

A bank over a store and a configuration in FOLDER, whose one upstream is `fixture_tools.py`; its tools
are published under their own names. The resources and prompts that the suite's scenarios prescribe
come from two sources beside those of the bank. Prints the address once it serves.
"""

from __future__ import annotations

import json
import logging
import socket
import sys
import warnings
from pathlib import Path
from typing import Any, ClassVar

import anyio
import mcp.types as types
import uvicorn
from mcp import MCPDeprecationWarning

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent / "interaction"))

from fake_bank import skill
from fixture_tools import PNG, TEXT, embedded, form, text

from server.settings import read_settings
from server.surface import BankServer, SurfaceOptions
from server.surface.sources import Wanted, text_contents
from server.wiring import open_bank
from skills_store.sqlite import open_sqlite_store

TOOLS = Path(__file__).with_name("fixture_tools.py")


class FixtureResources:
    """`test://…`, as the scenarios name them."""

    texts: ClassVar = {
        "test://static-text": "This is the content of the static text resource.",
        "test://watched-resource": "Watched",
    }

    def resources(self) -> list[types.Resource]:
        uris = (*self.texts, "test://static-binary")
        return [types.Resource(uri=uri, name=uri.removeprefix("test://")) for uri in uris]

    def templates(self) -> list[types.ResourceTemplate]:
        return [types.ResourceTemplate(uri_template="test://template/{id}/data", name="template")]

    async def read(self, uri: str) -> types.ReadResourceResult | None:
        if uri in self.texts:
            return text_contents(uri, self.texts[uri], "text/plain")
        if uri == "test://static-binary":
            blob = types.BlobResourceContents(uri=uri, mime_type="image/png", blob=PNG)
            return types.ReadResourceResult(contents=[blob])
        if uri.startswith("test://template/") and uri.endswith("/data"):
            given = uri.split("/")[3]
            data = {"id": given, "templateTest": True, "data": f"Data for ID: {given}"}
            return text_contents(uri, json.dumps(data))
        return None

    def complete(self, wanted: Wanted) -> list[str] | None:
        return ["1", "2"] if wanted.of == "test://template/{id}/data" else None


def prompt(name: str, *required: str) -> types.Prompt:
    arguments = [types.PromptArgument(name=one, description=one, required=True) for one in required]
    return types.Prompt(name=name, description=f"Fixture {name}.", arguments=arguments or None)


def said(*blocks: Any) -> types.GetPromptResult:
    return types.GetPromptResult(
        messages=[types.PromptMessage(role="user", content=block) for block in blocks]
    )


class FixturePrompts:
    """The prompts that the scenarios name."""

    def prompts(self) -> list[types.Prompt]:
        return [
            prompt("test_simple_prompt"),
            prompt("test_prompt_with_arguments", "arg1", "arg2"),
            prompt("test_prompt_with_embedded_resource", "resourceUri"),
            prompt("test_prompt_with_image"),
            prompt("test_input_required_result_prompt"),
        ]

    async def render(
        self, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult | types.InputRequiredResult | None:
        given = params.arguments or {}
        match params.name:
            case "test_simple_prompt":
                return said(text("This is a simple prompt for testing."))
            case "test_prompt_with_arguments":
                named = f"arg1='{given['arg1']}', arg2='{given['arg2']}'"
                return said(text(f"Prompt with arguments: {named}"))
            case "test_prompt_with_embedded_resource":
                resource = embedded(given["resourceUri"], "text/plain", "Embedded resource for testing.")
                return said(resource, text("Please process the embedded resource above."))
            case "test_prompt_with_image":
                image = types.ImageContent(type="image", data=PNG, mime_type="image/png")
                return said(image, text("Please analyze the image above."))
            case _:
                answer = (params.input_responses or {}).get("user_context")
                if answer is None:
                    asked = form("What context?", {"context": TEXT})
                    return types.InputRequiredResult(input_requests={"user_context": asked})
                return said(text(f"Use this context: {json.dumps(answer.content)}"))

    def complete(self, wanted: Wanted) -> list[str] | None:
        return ["one", "two"] if wanted.of.startswith("test_") else None


def keep_skills(path: Path) -> None:
    """Put two skills into the store, so that there are packages to list."""
    store = open_sqlite_store(path)
    for name in ("double", "double_again"):
        store.add_version(skill(name), expected_head=None)
    store.close()


async def main(folder: Path) -> None:
    keep_skills(folder / "store.db")
    config = folder / "config.json"
    everything = ["elicitation", "sampling", "roots", "log"]
    config.write_text(
        json.dumps(
            {
                "mcpServers": {"fixture": {"command": sys.executable, "args": [str(TOOLS)]}},
                "skillbank": {"forward": {"fixture": everything}},
            }
        )
    )
    options = SurfaceOptions(publish_tools="original", bare=frozenset({"fixture"}))
    async with open_bank(read_settings(config=config, store=folder / "store.db")) as bank:
        await bank.look_at_servers()
        server = BankServer(bank, options, shelves=[FixtureResources()], prompters=[FixturePrompts()])
        with socket.socket() as bound:
            bound.bind(("127.0.0.1", 0))
            print(f"http://localhost:{bound.getsockname()[1]}/mcp", flush=True)
            app = server.streamable_http_app(retry_interval=100)
            running = uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1)
            await uvicorn.Server(running).serve(sockets=[bound])


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    warnings.filterwarnings("ignore", category=MCPDeprecationWarning)
    anyio.run(main, Path(sys.argv[1]))
