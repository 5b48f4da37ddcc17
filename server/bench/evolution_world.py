"""The servers that tasks of the evolution benchmark run on, and which of them stand in each task's catalog.

A task's catalog has its own servers and ten others, drawn by its id: real ones, whose tools look much
alike and would really answer, or really fail, if called.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from random import Random
from typing import Literal, cast

from pydantic import JsonValue

from catalog.tools import Snapshot
from server.progress import ProgressListener
from server.provisioning.demo_servers import DEMO_SERVERS
from server.provisioning.fetched import FETCHED_SERVERS, cache_folder, fetch_servers, servers_document
from server.provisioning.task_file import BenchTask

__all__ = [
    "DISTRACTORS",
    "WORLD_SERVERS",
    "Part",
    "catalog_of",
    "distractors",
    "fetch_world",
    "part_of",
    "world_config",
]

Part = Literal["search", "validation"]

DISTRACTORS = 10
WORLD_SERVERS: tuple[str, ...] = tuple(sorted(server.name for server in (*DEMO_SERVERS, *FETCHED_SERVERS)))
"""Every server of the benchmark by name; the same file of effects and versions as the other benchmarks."""
_TELLING = frozenset(
    {
        "mathematics/get_calculation_history",
        "mathematics/list_session_variables",
        "retail/get_call_log",
        "airline/get_call_log",
    }
)
_SEARCH_SHARE = 61 / 104
"""Paper: EvoFlux (61 tasks searched, 43 for validation). Differs: by a hash of the id."""


def part_of(task_id: str) -> Part:
    """Return which part of the tasks one belongs to."""
    drawn = int.from_bytes(hashlib.sha256(f"part:{task_id}".encode()).digest()[:4]) / 2**32
    return "search" if drawn < _SEARCH_SHARE else "validation"


def distractors(task: BenchTask, servers: Iterable[str] = WORLD_SERVERS) -> tuple[str, ...]:
    """Return the ten other servers in a task's catalog, or all where there are fewer, by name."""
    others = sorted(set(servers) - set(task.servers))
    drawn = Random(f"distractors:{task.id}").sample(others, min(DISTRACTORS, len(others)))
    return tuple(sorted(drawn))


def catalog_of(task: BenchTask, snapshot: Snapshot, servers: Sequence[str]) -> Snapshot:
    """Return the tools that a task's catalog has: those of its servers and of these others.

    Tools that tell what was called before are left out: a search could read the answer of another run.
    """
    names = {*task.servers, *servers}
    return Snapshot.of(
        *(tool for tool in snapshot if tool.id.server in names and str(tool.id) not in _TELLING)
    )


def fetch_world(listener: ProgressListener) -> None:
    """Install what is not there yet of the fetched servers.

    Raises:
        BenchError: the package index does not give them.
    """
    fetch_servers(WORLD_SERVERS, cache_folder(), listener)


def world_config(folder: Path, names: Iterable[str] = WORLD_SERVERS) -> Path:
    """Write a configuration of the servers of these names, and return where. Learning is off.

    What runs in a process of its own anyway may be called: the sqlite server (`reset`).

    Raises:
        DemoServersMissing: naming every one of the demo's that is not installed.
    """
    document = servers_document(names, folder / "state")
    own = cast("dict[str, JsonValue]", document["skillbank"])
    own["learning"] = "off"
    path = folder / "config.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return path
