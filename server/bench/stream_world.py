"""The bank that a condition of the stream benchmark runs on, and how it is asked there.

Paper: FlowEvo (Table 4): no skills; compiled only; reused too; curated too; and text memory (ExpeL)
    in place of skills. Ablations: no gate before admission, a fifth of all labels wrong.
Differs: the gate that is off is the person who approves whatever was compiled, at once.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, cast

from pydantic import JsonValue

from server.backends.backend import Wire
from server.backends.roles import with_backend
from server.bank import Bank
from server.bench.forks import Forks
from server.bench.stream_tasks import SERVERS
from server.progress import Progress, ProgressListener, ignore_progress
from server.provisioning.demo_servers import demo_document
from server.requests import Budget
from server.settings import Settings
from server.wiring import open_bank

__all__ = ["NOISE", "WAYS", "Condition", "Stage", "Way", "approve_all", "open_stream_bank"]

Condition = Literal[
    "none", "compile only", "+ reuse", "+ curation", "text memory", "no admission gate", "20 % label noise"
]
NOISE = 0.2
_BUDGET = Budget(seconds=60, calls=120, candidates=40)
"""Bounded by what is tried: seconds would make a busy machine a worse planner."""


@dataclass(frozen=True, slots=True)
class Way:
    """How a condition's bank is set up, and how it is asked."""

    learning: str = "auto"
    curation: Mapping[str, JsonValue] | None = None
    """None: as the product has it."""
    route: Literal["direct", "seeded", "dynamic"] | None = None
    noise: float = 0.0
    """Part of the checks that say the opposite of the truth."""
    gated: bool = True
    remembers: bool = False
    """Whether the planner is told of like tasks that came out right, in words."""
    checked: bool = True
    """Whether the bank is told the task's check."""
    budget: Budget = _BUDGET


@dataclass(frozen=True, slots=True)
class Stage:
    """What is the same for every bank of a run."""

    listener: ProgressListener = ignore_progress
    forks: Forks | None = None
    """Where processes of tool servers are forked; None: each is started."""

    def tell(self, said: str) -> None:
        """Tell what is measured now."""
        self.listener(Progress("bench", said))


_OFF: Mapping[str, JsonValue] = {"withhold": 0, "audit_every": 0}
WAYS: Mapping[Condition, Way] = {
    "none": Way(learning="off", curation=_OFF, route="dynamic"),
    "compile only": Way(curation=_OFF, route="dynamic"),
    "+ reuse": Way(curation=_OFF),
    "+ curation": Way(),
    "text memory": Way(learning="off", curation=_OFF, route="dynamic", remembers=True),
    "no admission gate": Way(curation=_OFF, gated=False),
    "20 % label noise": Way(noise=NOISE),
}


@asynccontextmanager
async def open_stream_bank(
    folder: Path,
    way: Way,
    planner: Wire | None = None,
    *,
    servers: tuple[str, ...] = SERVERS,
    replaced: Mapping[str, tuple[str, ...]] | None = None,
    forks: Forks | None = None,
) -> AsyncGenerator[Bank]:
    """Open the bank of a condition over the real servers.

    Args:
        folder: of configuration and store; opened a second time, the bank goes on with its store.
        way: the condition.
        planner: the model that plans; None: the deterministic planner.
        servers: that are configured.
        replaced: commands by server, where another version of it runs.
        forks: where processes of the other servers are forked; None: each is started.

    Raises:
        DemoServersMissing: the tool servers are not installed.
    """
    settings = _written(folder, way, _document(servers, replaced or {}, forks))
    async with open_bank(settings) as bank:
        yield bank if planner is None else Bank(replace(bank.context, models=with_backend(planner)))


def _written(folder: Path, way: Way, document: dict[str, JsonValue]) -> Settings:
    own = cast("dict[str, JsonValue]", document["skillbank"])
    own["learning"] = way.learning
    if way.curation is not None:
        own["curation"] = dict(way.curation)
    config = folder / "config.json"
    config.write_text(json.dumps(document), encoding="utf-8")
    return Settings(config, folder / "store.db", environment=dict(os.environ))


def _document(
    names: tuple[str, ...], replaced: Mapping[str, tuple[str, ...]], forks: Forks | None
) -> dict[str, JsonValue]:
    document = demo_document(names)
    servers = cast("dict[str, dict[str, JsonValue]]", document["mcpServers"])
    for name, entry in servers.items():
        started = [str(entry["command"]), *cast("list[str]", entry["args"])]
        command = [*replaced[name]] if name in replaced else forks.command(started) if forks else started
        servers[name] = {**entry, "command": command[0], "args": list[JsonValue](command[1:])}
    return document


def approve_all(bank: Bank) -> None:
    """Take every compiled version into use, whatever the gate found: what a bank without a gate does."""
    context = bank.context
    for head in context.store.heads():
        state = head.state
        if state == "shadow":
            context.store.move(
                head.name, head.version, "proposed", reason="no gate", by="person", at=context.clock()
            )
        if state in ("shadow", "proposed", "context_only"):
            context.store.move(
                head.name, head.version, "active", reason="no gate", by="person", at=context.clock()
            )
    bank.refresh_published()
