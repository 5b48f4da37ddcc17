"""A bank over scripted tool servers in this process, with a store in a temporary folder."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import pytest

from catalog.config import Config, CurationSpec, ServerSpec
from catalog.effects import Effect, EffectTable, Reset
from catalog.labels import LabelTable
from catalog.testing import Reply, ScriptedServer, ScriptedTool, open_test_connections
from catalog.tools import ToolId
from server.bank import Bank, Context
from server.bank.finding import Finder
from server.execution.consent import Consent, NoConsent
from server.execution.spill import Spill
from server.progress import Progress
from skills_store.redaction import Redactor
from skills_store.sqlite import open_sqlite_store

METERS = {"meters": 1.0, "kilometers": 1000.0, "miles": 1609.344, "feet": 0.3048}
NUMBER = {"type": "number"}
TEXT = {"type": "string"}


def schema(required: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required or properties),
        "additionalProperties": False,
    }


def units() -> list[ScriptedTool]:
    unit = {"type": "string", "enum": [*METERS]}

    def convert(arguments: Any) -> Any:
        value = arguments["value"] * METERS[arguments["from_unit"]] / METERS[arguments["to_unit"]]
        return {"value": value, "unit": arguments["to_unit"]}

    return [
        ScriptedTool(
            "convert_length",
            convert,
            schema(value={"type": "number", "minimum": 0, "maximum": 1000000}, from_unit=unit, to_unit=unit),
            schema(value=NUMBER, unit=TEXT),
            description="Convert a length from one unit to another.",
        )
    ]


def calculator() -> list[ScriptedTool]:
    pair, result = schema(a=NUMBER, b=NUMBER), schema(result=NUMBER)
    return [
        ScriptedTool(
            "add",
            lambda n: {"result": n["a"] + n["b"]},
            pair,
            result,
            description="Add two numbers: a plus b.",
        ),
        ScriptedTool(
            "multiply",
            lambda n: {"result": n["a"] * n["b"]},
            pair,
            result,
            description="Multiply two numbers: a times b.",
        ),
    ]


def hashes() -> list[ScriptedTool]:
    return [
        ScriptedTool(
            "sha256",
            lambda n: {"digest": hashlib.sha256(n["text"].encode()).hexdigest()},
            schema(text=TEXT),
            schema(digest=TEXT),
            description="Compute the SHA-256 hash digest of a text.",
        )
    ]


def notes() -> list[ScriptedTool]:
    kept: list[str] = []

    def save(arguments: Any) -> Any:
        if arguments["text"] == "rejected":
            return Reply.text("Error: the notebook refuses this", is_error=True)
        kept.append(arguments["text"])
        return {"count": len(kept), "text": arguments["text"]}

    return [
        ScriptedTool(
            "save_note", save, schema(text=TEXT), schema(count=NUMBER, text=TEXT), description="Save a note."
        ),
        ScriptedTool("list_notes", lambda _: {"notes": [*kept]}, schema(), description="List the notes."),
    ]


def clock() -> list[ScriptedTool]:
    numbers = itertools.count(1)

    def stamp(arguments: Any) -> Any:
        return {"id": f"id-{next(numbers)}", "text": arguments["text"]}

    return [
        ScriptedTool(
            "stamp", stamp, schema(text=TEXT), schema(id=TEXT, text=TEXT), description="Stamp a text."
        ),
        ScriptedTool("ignore", lambda _: {"text": "always this"}, schema(text=TEXT), schema(text=TEXT)),
    ]


EFFECTS = {
    "units": {"*": Effect.PURE},
    "calculator": {"*": Effect.PURE},
    "hashes": {"*": Effect.PURE},
    "notes": {"save_note": Effect.WRITE, "list_notes": Effect.READ},
    "clock": {"*": Effect.READ},
}


@dataclass
class Desk:
    """What a test of the bank has at hand."""

    bank: Bank
    context: Context
    servers: Mapping[str, ScriptedServer]
    progress: list[Progress] = field(default_factory=list[Progress])

    @property
    def store(self) -> Any:
        return self.context.store

    def count(self, tool: str | None = None) -> int:
        """Return how many calls arrived at any server, of one tool or of all."""
        return sum(server.log.count(tool) for server in self.servers.values())

    async def change(self, server: str, tools: list[ScriptedTool]) -> None:
        """Replace the tools of a server and wait until the bank's connection lists them."""
        changed = anyio.Event()

        async def note(name: str) -> None:
            if name == server:
                changed.set()

        self.context.connections.on_change(note)
        await self.servers[server].listened()
        await self.servers[server].change_tools(tools)
        with anyio.fail_after(10):
            await changed.wait()


OpenDesk = Callable[..., AbstractAsyncContextManager[Desk]]


@pytest.fixture
def open_desk(tmp_path: Path) -> OpenDesk:
    """Open a bank over scripted servers; by default units, calculator, hashes, notes and clock."""

    @asynccontextmanager
    async def opened(
        servers: Mapping[str, ScriptedServer] | None = None,
        *,
        effects: Mapping[str, Mapping[str, Effect]] | None = None,
        reset: Mapping[str, Reset] | None = None,
        learning: Any = "auto",
        labels: LabelTable | None = None,
        consent: Consent | None = None,
        secrets: tuple[str, ...] = (),
        configured: tuple[str, ...] | None = None,
        store: Any = None,
        timeout_seconds: float = 10.0,
        finder: Finder | None = None,
        now: Callable[[], float] = lambda: 1_700_000_000.0,
        curation: CurationSpec | None = None,
    ) -> AsyncGenerator[Desk]:
        makers = {"units": units, "calculator": calculator, "hashes": hashes, "notes": notes, "clock": clock}
        offered = servers or {name: ScriptedServer(make) for name, make in makers.items()}
        table = EffectTable(effects or EFFECTS, reset or {})
        names = [*offered] if configured is None else configured
        modes = {"*": "auto", **learning} if isinstance(learning, dict) else {"*": learning}
        config = Config(
            {n: ServerSpec(n, command="scripted") for n in names},
            effects=table,
            labels=labels or LabelTable(),
            learning=modes.pop("*"),
            learning_by_server=modes,
            curation=curation or CurationSpec(),
        )
        kept = store or open_sqlite_store(tmp_path / "store.db")
        progress: list[Progress] = []
        upstream = {name: server for name, server in offered.items() if name in names}
        with anyio.fail_after(60):
            async with open_test_connections(
                upstream, effects=table, timeout_seconds=timeout_seconds
            ) as connections:
                context = Context(
                    config=config,
                    store=kept,
                    connections=connections,
                    consent=consent or NoConsent(),
                    progress=progress.append,
                    redact=Redactor(secrets).redact,
                    clock=now,
                    config_path=tmp_path / "config.json",
                    store_path=tmp_path / "store.db",
                    spill=Spill(tmp_path / "values"),
                    finder=finder or Finder(),
                )
                yield Desk(Bank(context), context, offered, progress)
        if store is None:
            kept.close()

    return opened


@pytest.fixture
def node() -> Callable[..., dict[str, Any]]:
    """A node of a document: id, `SERVER/TOOL`, arguments."""

    def made(node_id: str, tool: str, arguments: Any = None, **more: Any) -> dict[str, Any]:
        server, _, name = tool.partition("/")
        return {
            "id": node_id,
            "tool": {"server": server, "tool": name},
            "arguments": arguments or {},
            **more,
        }

    return made


@pytest.fixture
def document() -> Callable[..., dict[str, Any]]:
    """A workflow document: nodes, outputs, and the types of its inputs by name."""

    def made(*nodes: Any, outputs: Any, inputs: Any = None, **more: Any) -> dict[str, Any]:
        declared = {"type": "object"}
        if inputs:
            declared = {"type": "object", "properties": inputs, "required": [*inputs]}
        return {"name": "made", "inputs": declared, "nodes": [*nodes], "outputs": outputs, **more}

    return made


@pytest.fixture
def tool_id() -> Callable[[str], ToolId]:
    def made(text: str) -> ToolId:
        server, _, name = text.partition("/")
        return ToolId(server, name)

    return made
