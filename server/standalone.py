"""One exported skill without a bank: run once from its package, or served as an MCP server of one tool.

What is executed is the workflow of the package, under the effect classes of the configuration given
beside it and against tools whose contracts are those it was verified with.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import anyio
import mcp.types as types
from mcp import MCPError
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server
from pydantic import JsonValue

from catalog.config import Config, load_config
from catalog.connections import Connections, open_connections
from catalog.effects import Activity
from catalog.errors import CatalogError
from catalog.schema import coerce, problems
from catalog.tools import Snapshot
from server.execution.consent import NoConsent
from server.execution.episode import Episode
from server.execution.expectations import Reached, check_expectations
from server.execution.options import RunOptions
from server.execution.run import execute_workflow
from server.sandbox.sandbox import Sandbox, open_sandbox
from skills_store.errors import StoreError
from skills_store.hints import derived_hints
from skills_store.interchange.bundle import Imported, parse_bundle
from skills_store.interchange.package_files import read_package_files
from skills_store.interchange.packages import parse_package
from skills_store.interchange.portable import PortableSkill
from skills_store.workflow.model import Workflow

__all__ = ["OneSkill", "open_skill", "run_package", "serve_folder"]

_DONE, _FAILED, _MISUSE = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Answer:
    """Outputs of one run, or why there are none."""

    outputs: dict[str, JsonValue] | None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class OneSkill:
    """An exported skill over live tool servers."""

    imported: Imported
    config: Config
    connections: Connections
    sandbox: Sandbox

    @property
    def skill(self) -> PortableSkill:
        """What is run."""
        return self.imported.skill.skill

    async def call(self, arguments: Mapping[str, JsonValue]) -> Answer:
        """Run the skill on inputs, once."""
        coerced, _ = coerce(self.skill.signature.input_schema, dict(arguments))
        inputs = coerced if isinstance(coerced, dict) else {}
        if wrong := problems(self.skill.signature.input_schema, inputs):
            return Answer(None, "; ".join(f"{one.pointer or '/'}: {one.message}" for one in wrong))
        snapshot = await self.snapshot()
        if changed := self._changed(snapshot):
            return Answer(None, f"not what it was verified with: {'; '.join(changed)}")
        workflow = self.skill.workflow
        episode = Episode(self.connections, self.config.effects, snapshot, NoConsent())
        episode.set_plan(workflow, self._called)
        options = RunOptions(skills=self._called, sandbox=self.sandbox)
        async with episode.candidate(Activity.CLIENT_CALL) as caller:
            run = await execute_workflow(workflow, inputs, caller, snapshot=snapshot, options=options)
        faults = list(run.faults)
        if not faults and run.result is not None:
            reached = Reached(dict(run.result), inputs, run.outputs)
            faults = list(check_expectations(workflow.expect, reached, "/expect"))
        if faults or run.result is None:
            return Answer(None, "; ".join(fault.message for fault in faults) or "it has no outputs")
        return Answer(run.result)

    async def snapshot(self) -> Snapshot:
        """Connect to the servers it needs and return their tools."""
        return await self.connections.snapshot(sorted({pin.tool.server for pin in self.skill.pins}))

    def _changed(self, snapshot: Snapshot) -> list[str]:
        found: list[str] = []
        for pin in self.skill.pins:
            tool = snapshot.get(pin.tool)
            if tool is None:
                why = "is not configured" if pin.tool.server not in self.config.servers else "is not listed"
                found.append(f"{pin.tool} {why}")
            elif tool.contract_hash != pin.contract_hash:
                found.append(f"{pin.tool} has changed")
        return found

    def _called(self, name: str, version: int) -> Workflow | None:
        found = (one for one in self.imported.calls if (one.skill.name, one.version) == (name, version))
        return next((one.skill.workflow for one in found), None)


@asynccontextmanager
async def open_skill(imported: Imported, config: Config) -> AsyncGenerator[OneSkill]:
    """Open a skill; leaving it ends every server it started."""
    needed = {pin.tool.server for pin in imported.skill.skill.pins}
    async with (
        open_connections(config, only=needed & config.servers.keys(), environment=os.environ) as connections,
        open_sandbox() as sandbox,
    ):
        yield OneSkill(imported, config, connections, sandbox)


def run_package(folder: Path, arguments: Sequence[str]) -> int:
    """Run the skill of a package once, print its outputs as JSON, and return the exit code."""
    parser = argparse.ArgumentParser("run.py", description="Runs the skill of this package once.")
    parser.add_argument("--config", type=Path, help="mcpServers file with the tool servers it needs")
    parser.add_argument("--inputs", default="{}", help="inputs as a JSON object")
    given = parser.parse_args(arguments)
    try:
        inputs = cast("JsonValue", json.loads(given.inputs))
        if not isinstance(inputs, dict):
            raise ValueError("--inputs is no JSON object")
        imported = parse_package(read_package_files(folder))
        answer = anyio.run(_once, imported, _config(given.config), inputs)
    except (ValueError, OSError, CatalogError, StoreError) as error:
        return _told(str(error), _MISUSE)
    if answer.outputs is None:
        return _told(answer.problem, _FAILED)
    sys.stdout.write(json.dumps(answer.outputs, ensure_ascii=False, indent=2) + "\n")
    return _DONE


async def _once(imported: Imported, config: Config, inputs: dict[str, JsonValue]) -> Answer:
    async with open_skill(imported, config) as skill:
        return await skill.call(inputs)


def serve_folder(folder: Path, arguments: Sequence[str]) -> int:
    """Serve the skill of an exported server's folder on stdin and stdout until they close."""
    parser = argparse.ArgumentParser("serve.py", description="Serves one skill as an MCP server on stdio.")
    parser.add_argument("--config", type=Path, default=folder / "mcp.json", help="mcpServers file")
    given = parser.parse_args(arguments)
    try:
        imported, config = parse_bundle((folder / "skill.json").read_bytes()), _config(given.config)
    except (OSError, CatalogError, StoreError) as error:
        return _told(str(error), _MISUSE)
    anyio.run(_serve, imported, config)
    return _DONE


def _config(path: Path | None) -> Config:
    return Config(servers={}) if path is None else load_config(path)


def _told(problem: str, code: int) -> int:
    sys.stderr.write(f"{problem}\n")
    return code


async def _serve(imported: Imported, config: Config) -> None:
    async with open_skill(imported, config) as skill:
        server = _server(skill)
        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())


def _server(skill: OneSkill) -> Server[dict[str, object]]:
    async def list_tools(
        ctx: ServerRequestContext[dict[str, object], object], params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        del ctx, params
        return types.ListToolsResult(tools=[await _tool(skill)])

    async def call_tool(
        ctx: ServerRequestContext[dict[str, object], object], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        del ctx
        if params.name != skill.skill.name:
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name}")
        answer = await skill.call(params.arguments or {})
        text = answer.problem or json.dumps(answer.outputs, ensure_ascii=False)
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=text)],
            structured_content=answer.outputs,
            is_error=answer.outputs is None,
        )

    version = str(skill.imported.skill.version)
    return Server(skill.skill.name, version=version, on_list_tools=list_tools, on_call_tool=call_tool)


async def _tool(skill: OneSkill) -> types.Tool:
    one, snapshot = skill.skill, await skill.snapshot()
    tools = [tool for pin in one.pins if (tool := snapshot.get(pin.tool)) is not None]
    hints = derived_hints(tools, skill.config.effects)
    when = f"\nUse it when: {one.guidance.when_to_use}" if one.guidance.when_to_use else ""
    return types.Tool(
        name=one.name,
        title=one.title,
        description=f"{one.description}{when}",
        input_schema=one.signature.input_schema,
        output_schema=one.signature.output_schema,
        annotations=types.ToolAnnotations(
            read_only_hint=hints.read_only,
            destructive_hint=hints.destructive,
            idempotent_hint=hints.idempotent,
            open_world_hint=hints.open_world,
        ),
    )
