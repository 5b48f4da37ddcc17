"""What every use case stands on: configuration, store, connections, and who can be asked.

Made by `server.wiring`; owns nothing that must be closed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from catalog.config import Config
from catalog.connections import Connections
from catalog.effects import EffectTable
from catalog.tools import Snapshot
from server.execution.consent import Consent
from server.execution.episode import Episode
from server.execution.options import RunOptions
from server.execution.spill import Redact, Spill
from server.progress import Progress, ProgressListener
from skills_store.store import Store
from skills_store.workflow.model import Workflow

__all__ = ["Context", "allowing"]


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
    principal: str = "local"
    memoise: bool = True
    """Whether equal answers of free tools stand in for calls; off only to measure what that saves."""
    _listed: set[str] = field(default_factory=set[str])

    def serving(self, consent: Consent | None, progress: ProgressListener | None) -> Context:
        """Return the context with a client's own consent and progress, where it has any."""
        return replace(self, consent=consent or self.consent, progress=progress or self.progress)

    async def snapshot(self, servers: Iterable[str] | None = None) -> Snapshot:
        """Connect to servers and return all tools that are known, those last stored included.

        Args:
            servers: the ones to connect to; None for all that are configured.
        """
        wanted = frozenset(self.config.servers if servers is None else servers)
        wanted &= frozenset(self.config.servers)
        if wanted - self._listed:
            self.progress(Progress("connect", f"connecting to {', '.join(sorted(wanted - self._listed))}"))
            listed = await self.connections.snapshot(servers=wanted)
            self.store.save_snapshot(listed, self.clock())
            self._listed.update(listed.servers)
        return self.known()

    def known(self) -> Snapshot:
        """Return the tools of configured servers: as listed now, else as stored."""
        live = self.connections.known
        stored = [t for t in self.store.snapshot() if t.id.server not in live.servers]
        kept = [tool for tool in stored if tool.id.server in self.config.servers]
        return Snapshot.of(*kept, *live)

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

    def skill_workflow(self, name: str, version: int) -> Workflow | None:
        """Return the body of a stored skill version, None when there is none."""
        skill = self.store.version(name, version)
        return skill.workflow if skill else None


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
