"""The servers that the explore benchmark runs on: of the demo, looked at while building, and set aside.

What is wrong with those that were set aside was written down from a survey of real servers, word by word,
before exploring ever ran on them; no other code and no test names them. What was found out by looking at
the others counts for nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from pydantic import JsonValue

from server.exploration.health.findings import Finding
from server.progress import ProgressListener
from server.provisioning.demo_servers import demo_document
from server.provisioning.fetched import fetch_environment

__all__ = ["DEMO_EXPLORED", "FETCHED", "Defect", "ExploredServer", "explored_document"]

DEMO_EXPLORED = ("mathematics", "calculator", "hashlib", "time", "sqlite")
_EASY = frozenset(
    {"no-annotations", "no-description", "no-output-schema", "unknown-argument-ignored", "untyped-argument"}
)
"""Rules that nearly every server breaks, or that its listing alone shows."""


@dataclass(frozen=True, slots=True)
class Defect:
    """What is wrong with a server. `rule` would find it; None: none of the rules is about it."""

    rule: str | None
    says: str
    tools: tuple[str, ...] = ()
    """That show it, as listed; empty: any."""

    @property
    def is_easy(self) -> bool:
        """Whether finding it shows little."""
        return self.rule in _EASY

    def is_found(self, findings: Iterable[Finding]) -> bool:
        """Return whether one of some findings is about it."""
        return any(
            finding.rule == self.rule and (not self.tools or finding.tool in self.tools)
            for finding in findings
        )


@dataclass(frozen=True, slots=True)
class ExploredServer:
    """A server from the package index, in an environment of its own."""

    name: str
    distribution: str
    version: str
    script: str
    arguments: tuple[str, ...] = ()
    effects: Mapping[str, str] = field(default_factory=lambda: {"*": "pure"})
    reset: str = "none"
    requires: tuple[str, ...] = ("mcp<2",)
    """Beside the distribution."""
    set_aside: bool = False
    defects: tuple[Defect, ...] = ()


FETCHED: tuple[ExploredServer, ...] = (
    ExploredServer("algebra", "symath-mcp", "0.1.0", "symath-mcp"),
    ExploredServer(
        "database",
        "mcp-server-sqlite",
        "2025.4.25",
        "mcp-server-sqlite",
        ("--db-path", "t.db"),
        {"*": "write"},
        "process+dirs",
    ),
    ExploredServer(
        "todo", "todo-txt-mcp", "1.0.2", "todo-txt-mcp", ("todo.txt",), {"*": "write"}, "process+dirs"
    ),
    ExploredServer(
        "tables",
        "csv-mcp-server",
        "1.0.0",
        "csv-editor",
        effects={"*": "write"},
        reset="process+dirs",
        requires=(),
        set_aside=True,
        defects=(
            Defect("disguised-error", '{"success": false} without isError'),
            Defect("untyped-argument", "two arguments have no type"),
        ),
    ),
    ExploredServer(
        "logic",
        "euclid-mcp",
        "0.5.0",
        "euclid-mcp",
        effects={"*": "write"},
        reset="process",
        requires=(),
        set_aside=True,
        defects=(
            Defect(
                "disguised-error", 'errors of parsing come as {"solutions": [], "error": ...} without isError'
            ),
            Defect("unknown-argument-ignored", "an unknown argument is ignored"),
        ),
    ),
    ExploredServer(
        "exact",
        "exact-calc-mcp",
        "0.1.0",
        "exact-calc",
        ("--serve",),
        requires=(),
        set_aside=True,
        defects=(
            Defect("disguised-error", '{"error": ...} without isError'),
            Defect("unknown-argument-ignored", "an unknown argument is ignored"),
        ),
    ),
    ExploredServer(
        "molecules",
        "mcp-rdkit",
        "0.1.9",
        "python",
        ("-m", "mcp_rdkit"),
        set_aside=True,
        defects=(
            Defect("leaks-internals", "a wrong molecule gives a dump of C++ signatures as the error"),
            Defect("unknown-argument-ignored", "an unknown argument is ignored"),
        ),
    ),
    ExploredServer(
        "chess",
        "mcp-chess",
        "0.1.9",
        "mcp-chess",
        effects={"*": "write"},
        reset="process",
        set_aside=True,
        defects=(
            Defect("disguised-error", 'an illegal move gives {"error": ...} without isError', ("make_move",)),
        ),
    ),
    ExploredServer(
        "slides",
        "office-powerpoint-mcp-server",
        "2.0.7",
        "ppt_mcp_server",
        effects={"*": "write"},
        reset="process+dirs",
        set_aside=True,
        defects=(Defect("disguised-error", 'every error is {"error": ...} without isError', ("add_slide",)),),
    ),
    ExploredServer(
        "documents",
        "office-word-mcp-server",
        "1.1.11",
        "word_mcp_server",
        effects={"*": "write"},
        reset="process+dirs",
        requires=("mcp<2", "fastmcp<3"),
        set_aside=True,
        defects=(Defect("disguised-error", "errors of files are plain text without isError"),),
    ),
)


def explored_document(name: str, folder: Path, listener: ProgressListener) -> dict[str, JsonValue]:
    """Return the configuration document of one server, which works in a folder of its own.

    Raises:
        DemoServersMissing: it is one of the demo's and not installed.
        ProvisioningError: it cannot be fetched.
    """
    fetched = next((server for server in FETCHED if server.name == name), None)
    if fetched is None:
        return demo_document([name])
    wanted = [f"{fetched.distribution}=={fetched.version}", *fetched.requires]
    python = fetch_environment(f"explored-{name}", wanted, listener)
    command = str(Path(python).parent / fetched.script)
    own: dict[str, JsonValue] = {"effects": {name: cast("JsonValue", dict(fetched.effects))}}
    if fetched.reset != "none":
        own["reset"] = {name: fetched.reset}
    return {
        "mcpServers": {name: {"command": command, "args": [*fetched.arguments], "cwd": str(folder)}},
        "skillbank": own,
    }
