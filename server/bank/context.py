"""What every use case stands on: configuration, store, connections, and who can be asked.

Made by `server.wiring`; owns nothing that must be closed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import anyio

from catalog.config import Config
from catalog.connections import Connections
from catalog.effects import EffectTable
from catalog.search import ToolIndex
from catalog.tools import Snapshot, Tool
from server.bank.afterwards import Afterwards
from server.execution.consent import Consent
from server.execution.episode import Episode
from server.execution.options import RunOptions
from server.execution.recording import Recorder
from server.execution.spill import Redact, Spill
from server.progress import Progress, ProgressListener
from skills_store.skill import SkillState
from skills_store.store import Store
from skills_store.workflow.model import Workflow

__all__ = ["UNUSABLE", "Context", "allowing"]

UNUSABLE: frozenset[SkillState] = frozenset({"retired", "rejected", "suppressed", "stale"})
"""States of a skill version that no workflow may call."""


@dataclass
class _Seen:
    """Tools as this process knows them: which servers were listed, what was read from the store."""

    listed: set[str] = field(default_factory=set[str])
    saved: dict[str, tuple[Tool, ...]] = field(default_factory=dict[str, tuple[Tool, ...]])
    stored: Snapshot | None = None
    index: ToolIndex | None = None
    indexed: tuple[Tool, ...] = ()


@dataclass(frozen=True)
class Context:
    """The parts of an open bank; a client with consent and progress of its own gets `serving`."""

    config: Config
    store: Store
    connections: Connections
    consent: Consent
    progress: ProgressListener
    redact: Redact
    clock: Callable[[], float]
    """Unix seconds."""
    config_path: Path
    store_path: Path
    spill: Spill | None = None
    afterwards: Afterwards = field(default_factory=Afterwards)
    """What need not be done before an answer is given."""
    principal: str = "local"
    memoise: bool = True
    """Whether equal answers of free tools stand in for calls; off only to measure what that saves."""
    _seen: _Seen = field(default_factory=_Seen)

    def serving(self, consent: Consent | None, progress: ProgressListener | None) -> Context:
        """Return the context with a client's own consent and progress, where it has any."""
        return replace(self, consent=consent or self.consent, progress=progress or self.progress)

    async def snapshot(
        self, servers: Iterable[str] | None = None, *, patience_seconds: float | None = None
    ) -> Snapshot:
        """Connect to servers and return all tools that are known, those last stored included.

        Args:
            servers: the ones to connect to; None for all that are configured.
            patience_seconds: how long to wait for them; they go on connecting. None: as long as each may.
        """
        wanted = frozenset(self.config.servers if servers is None else servers)
        wanted &= frozenset(self.config.servers)
        if missing := wanted - self._seen.listed:
            self.progress(Progress("connect", f"connecting to {', '.join(sorted(missing))}"))
            with anyio.move_on_after(patience_seconds):
                await self.connections.snapshot(servers=missing)
            self._seen.listed.update(name for name in missing if self.is_ready(name))
        self._save_tools(wanted)
        return self.known()

    def is_ready(self, server: str) -> bool:
        """Return whether a server is connected and has listed its tools."""
        connection = self.connections.connection(server)
        return connection is not None and connection.status == "ready"

    def known(self) -> Snapshot:
        """Return the tools of configured servers: as listed now, else as stored."""
        live = self.connections.known
        if self._seen.stored is None:
            self._seen.stored = self.store.snapshot()
        stored = [
            tool
            for tool in self._seen.stored
            if tool.id.server in self.config.servers
            and tool.id.server not in live.servers
            and not self.is_ready(tool.id.server)
        ]
        return Snapshot.of(*stored, *live)

    def tool_index(self) -> ToolIndex:
        """Return a search index over the known tools, built anew only when they changed."""
        tools = tuple(self.known())
        if self._seen.index is None or self._seen.indexed != tools:
            self._seen.index, self._seen.indexed = ToolIndex(tools), tools
        return self._seen.index

    def episode(self, snapshot: Snapshot, effects: EffectTable | None = None) -> Episode:
        """Return a new episode over the shared connections."""
        return Episode(
            self.connections,
            effects or self.config.effects,
            snapshot,
            self.consent,
            self.principal,
            memoise=self.memoise,
        )

    def options(self, task: str | None = None) -> RunOptions:
        """Return how workflows are run for this bank."""
        return RunOptions(
            task=task,
            listener=self.progress,
            skills=self.skill_workflow,
            clock=self.clock,
            redact=self.redact,
            spill=self.spill,
        )

    @property
    def recorder(self) -> Recorder:
        """What makes values fit to be stored or shown."""
        return Recorder(self.redact, self.spill)

    def skill_workflow(self, name: str, version: int) -> Workflow | None:
        """Return the body of a stored skill version, None when there is none that may be called."""
        skill = self.store.version(name, version)
        return skill.workflow if skill is not None and skill.state not in UNUSABLE else None

    def _save_tools(self, servers: Iterable[str]) -> None:
        """Keep what servers list now, where it differs from what was kept last."""
        known = self.connections.known
        listed = {server: known.of_server(server) for server in servers if server in known.servers}
        changed = {s: tools for s, tools in listed.items() if self._seen.saved.get(s) != tools}
        if changed:
            snapshot = Snapshot.of(*(tool for tools in changed.values() for tool in tools))
            self.store.save_snapshot(snapshot, self.clock())
            self._seen.saved.update(changed)


def allowing(effects: EffectTable, allow: Sequence[str]) -> EffectTable:
    """Return the table with more standing consents, given as `SERVER/TOOL` patterns.

    Raises:
        ValueError: a pattern is not of that form.
    """
    consents = {server: tuple(patterns) for server, patterns in effects.allow.items()}
    for entry in allow:
        server, slash, tool = entry.partition("/")
        if not (server and slash and tool):
            raise ValueError(f"{entry!r} names no tool: expected SERVER/TOOL")
        consents[server] = (*consents.get(server, ()), tool)
    return replace(effects, allow=consents)
