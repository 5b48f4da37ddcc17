"""The real servers of the large live suite: what `real_servers.json` says of them, as a configuration.

Installing their packages belongs to `installing`, running them all at once to `recording`.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, JsonValue

__all__ = ["MARK", "Call", "Environment", "Fleet", "RealServer", "configuration", "furnish", "load_fleet"]

MARK = "SKILLBANK_LIVE_SUITE"
"""Environment variable by which every process of a run is known."""

_DATA = Path(__file__).with_name("real_servers.json")
_STUCK_NPM = """#!/bin/sh
if [ "$1" = install ]; then
  touch "$(dirname "$0")/begun"
  exec sleep 3600
fi
"""
_DRAWING = '<mxfile><diagram id="a" name="first"><mxGraphModel><root/></mxGraphModel></diagram></mxfile>'
_EMPTY_PDF = (
    b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[]/Count 0>>endobj\n"
)


class _Data(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Environment(_Data):
    """Packages that can live in one folder, each of a pinned version."""

    registry: Literal["pypi", "npm"]
    packages: tuple[str, ...]


class Call(_Data):
    """One call and what must come of it."""

    tool: str
    arguments: dict[str, JsonValue]
    fails: str | None = None
    """Kind of the failure, None for a success."""
    answer: str
    """Part of what is answered, or of the failure's message; empty: anything."""


class RealServer(_Data):
    """One server somebody else wrote."""

    name: str
    environment: str
    command: tuple[str, ...]
    env: dict[str, str] = {}
    tools: int
    """As many are listed."""
    warts: tuple[str, ...] = ()
    """What is odd about it, in words; the fields below are those that are asserted."""
    noise: bool = False
    """Whether it prints on standard output what is no message."""
    unusable: str | None = None
    """Why it never has any tools, as its report says."""
    longest_description: int = 0
    """One of its descriptions has at least so many characters."""
    largest_answer_bytes: int = 0
    """Its `storm` answers at least so much."""
    parallel_calls: int | None = None
    """Calls side by side that it bears, as its configuration says; None: as many as by default."""
    storm: Call | None = None
    """Made over and over while the others are called a second time."""
    hangs: Call | None = None
    """After it the server answers nothing any more."""
    calls: tuple[Call, ...]


class Fleet(_Data):
    """All of them."""

    environments: dict[str, Environment]
    servers: tuple[RealServer, ...]

    def runnable(self) -> Fleet:
        """Return those that this machine has a runtime for."""
        kept = {
            name: environment
            for name, environment in self.environments.items()
            if environment.registry != "npm" or (shutil.which("npm") and shutil.which("node"))
        }
        servers = tuple(server for server in self.servers if server.environment in kept)
        return Fleet(environments=kept, servers=servers)


def load_fleet() -> Fleet:
    """Return the servers that `real_servers.json` describes."""
    return Fleet.model_validate_json(_DATA.read_bytes())


def furnish(folder: Path) -> None:
    """Put into a server's own folder whatever one of them wants to find there."""
    for name in ("repository", "bank", "tasks", "state", "stuck-npm", ".obsidian"):
        (folder / name).mkdir(parents=True)
    for name in ("notes.txt", "notes.md"):
        (folder / name).write_text("# notes\nplain words\n", encoding="utf-8")
    (folder / "page.html").write_text("<html><body><p>plain words</p></body></html>", encoding="utf-8")
    (folder / "page.drawio").write_text(_DRAWING, encoding="utf-8")
    (folder / "todo.txt").touch()
    (folder / "empty.pdf").write_bytes(_EMPTY_PDF)
    for name, script in (("node", "#!/bin/sh\necho v20.0.0\n"), ("npm", _STUCK_NPM)):
        (folder / "stuck-npm" / name).write_text(script, encoding="utf-8")
        (folder / "stuck-npm" / name).chmod(0o755)


def configuration(fleet: Fleet, places: Mapping[str, Path], work: Path, web: str, mark: str) -> Fleet:
    """Return the fleet with every placeholder filled in.

    Args:
        fleet: the servers to start.
        places: folder of each environment.
        work: each server has a folder of its own in it.
        web: address under which `work` is served.
        mark: value of `MARK` for all their processes.
    """
    filled = [
        _filled(server, places[server.environment], work / server.name, f"{web}/{server.name}", mark)
        for server in fleet.servers
    ]
    return Fleet(environments=fleet.environments, servers=tuple(filled))


def _filled(server: RealServer, place: Path, work: Path, web: str, mark: str) -> RealServer:
    text = server.model_dump_json()
    known = {
        "{bin}": str(place / "bin"),
        "{modules}": str(place / "node_modules"),
        "{work}": str(work),
        "{web}": web,
        "{path}": os.environ["PATH"],
    }
    for placeholder, value in known.items():
        text = text.replace(placeholder, json.dumps(value)[1:-1])
    filled = RealServer.model_validate_json(text)
    return filled.model_copy(update={"env": {**filled.env, MARK: mark}})
