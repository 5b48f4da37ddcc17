"""What every use case stands on: configuration, store, connections, and who can be asked.

Made by `server.wiring`; owns nothing that must be closed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import anyio

from catalog.config import Config, ModelSpec
from catalog.connection import Connection
from catalog.connections import Connections
from catalog.effects import EffectTable
from catalog.era import Era
from catalog.search import EntryKind, Scope, ToolIndex
from catalog.tools import Snapshot, Tool, ToolId
from server.backends.roles import Models, no_models
from server.backends.sampling import Sampler
from server.bank.afterwards import Afterwards
from server.bank.finding import Finder, Findings
from server.bank.noticing import ToolNotes
from server.bank.patience import FOR_ALL, Patience
from server.bank.shelf import Shelf
from server.eras import known_eras, save_eras
from server.execution.consent import Consent, Remembered
from server.execution.episode import Episode
from server.execution.journal import Journal
from server.execution.options import RunOptions
from server.execution.recording import Recorder
from server.execution.spill import Redact, Spill
from server.planning.patterns import TaskPatterns
from server.progress import Progress, ProgressListener
from server.sandbox.sandbox import Sandbox
from server.telemetry import span
from skills_store.retrieval import SkillIndex
from skills_store.skill import Skill, SkillState
from skills_store.store import Store
from skills_store.workflow.model import Workflow

__all__ = ["UNUSABLE", "Context", "allowing"]

UNUSABLE: frozenset[SkillState] = frozenset({"retired", "rejected", "suppressed", "stale"})
"""States of a skill version that no workflow may call."""


@dataclass
class _Seen:
    """Tools as this process knows them: which servers were listed, what was read from the store."""

    listed: set[str] = field(default_factory=set[str])
    kept: dict[str, _Kept] = field(default_factory=dict[str, "_Kept"])
    """By server; none that listed nothing."""
    eras: dict[str, Era] | None = None
    stored: Snapshot | None = None
    index: ToolIndex | None = None
    indexed: tuple[Tool, ...] = ()

    def is_kept(self, server: str, link: Connection) -> bool:
        """Return whether what a server lists and speaks is what was kept of it."""
        kept = self.kept.get(server)
        return kept is not None and kept.tools is link.tools and kept.era == link.era


@dataclass(frozen=True, slots=True)
class _Kept:
    """What a server listed and spoke when that was last kept."""

    tools: tuple[Tool, ...]
    era: Era | None


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
    models: Models = field(default_factory=no_models)
    """By role; a client that lends its own is in there."""
    finder: Finder = field(default_factory=Finder)
    spill: Spill | None = None
    sandbox: Sandbox | None = None
    """What runs the code of skills; None: nothing does."""
    afterwards: Afterwards = field(default_factory=Afterwards)
    """What need not be done before an answer is given."""
    curation: anyio.Lock = field(default_factory=anyio.Lock)
    """Held while a skill is audited, moved or repaired, so that it is done once in this process."""
    principal: str = "local"
    memoise: bool = True
    """Whether equal answers of free tools stand in for calls; off only to measure what that saves."""
    _seen: _Seen = field(default_factory=_Seen)
    journal: Journal | None = None
    """Of the job that the calls are made for, None outside of one."""
    _shelf: Shelf = field(default_factory=Shelf)
    notes: ToolNotes = field(default_factory=ToolNotes)
    """What was noticed about tools: their changes, and who is told of them."""

    @property
    def effects(self) -> EffectTable:
        """Effect classes as configured; unknown for tools that have changed since they were given."""
        return replace(self.config.effects, changed=self.notes.changed(self.store))

    def serving(
        self, consent: Consent | None, progress: ProgressListener | None, sampler: Sampler | None = None
    ) -> Context:
        """Return the context with a client's own consent and progress, where it has any, and its model."""
        return replace(
            self,
            consent=consent or self.consent,
            progress=progress or self.progress,
            models=self.models.lending(sampler),
        )

    def choosing(self, model: ModelSpec | None) -> Context:
        """Return the context with one model in every role, as a person chose; None: no change."""
        return replace(self, models=self.models.choosing(model))

    def within(self, servers: Iterable[str]) -> Context:
        """Return the context in which no other servers than these are configured; what was seen is shared."""
        kept = {name: spec for name, spec in self.config.servers.items() if name in frozenset(servers)}
        seen = self._seen
        own = _Seen(listed=seen.listed, kept=seen.kept, eras=seen.eras, stored=seen.stored)
        return replace(self, config=replace(self.config, servers=kept), _seen=own)

    async def snapshot(self, servers: Iterable[str] | None = None, patience: Patience = FOR_ALL) -> Snapshot:
        """Connect to servers and return all tools that are known, those last stored included.

        Args:
            servers: the ones to connect to; None for all that are configured.
            patience: how long to wait for each; a slower one goes on connecting meanwhile, one that
                is not waited for at all is left to `connect`.
        """
        wanted = frozenset(self.config.servers if servers is None else servers)
        wanted &= frozenset(self.config.servers)
        if missing := wanted - self._seen.listed:
            stored = self.known().servers
            waiting = {name: patience.of(name, is_stored=name in stored) for name in missing}
            if awaited := sorted(name for name, seconds in waiting.items() if seconds > 0):
                self.progress(Progress("connect", f"connecting to {', '.join(awaited)}"))
                await self.connections.snapshot(servers=awaited, patience=waiting.__getitem__)
            self._seen.listed.update(name for name in missing if self.is_ready(name))
        self.keep_seen(wanted)
        return self.known()

    def connect(self) -> None:
        """Have the servers that were not listed yet connected, without waiting for any."""
        self.connections.begin(frozenset(self.config.servers) - self._seen.listed)

    def is_ready(self, server: str) -> bool:
        """Return whether a server is connected and has listed its tools."""
        connection = self.connections.connection(server)
        return connection is not None and connection.status == "ready"

    def known(self) -> Snapshot:
        """Return the tools of configured servers: as listed now, else as stored."""
        live = self.connections.known
        if not live.servers <= self.config.servers.keys():
            live = Snapshot.of(*(tool for tool in live if tool.id.server in self.config.servers))
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

    def heads(self) -> list[Skill]:
        """Return the version in use of every skill, ordered by name, as `Store.heads`; cheap to ask again."""
        return self._shelf.heads(self.store)

    def findable_skills(self) -> Sequence[Skill]:
        """Return the skills a search may find: what is active, and what is kept as guidance."""
        return self._shelf.findable(self.store)

    def skill_index(self) -> SkillIndex:
        """Return the search index over the skills that may be found."""
        return self._shelf.index(self.store)

    def task_patterns(self) -> TaskPatterns:
        """Return the skills by what their own tasks say."""
        return self._shelf.patterns(self.store)

    async def find(self, query: str, limit: int, kind: EntryKind, scope: Scope) -> Findings:
        """Search the one index over known tools and findable skills."""
        tools, skills = tuple(self.known()), tuple(self.findable_skills())
        described = {"gen_ai.memory.store.id": "skillbank", "skillbank.kind": kind}
        with span(f"search_memory {kind}", "search_memory", described) as current:
            findings = await self.finder.find(query, limit, tools, skills, kind, scope)
            current.set_attribute("gen_ai.memory.record.count", len(findings.found.hits))
            return findings

    def episode(self, snapshot: Snapshot, effects: EffectTable | None = None) -> Episode:
        """Return a new episode over the shared connections."""
        return Episode(
            self.connections,
            effects or self.effects,
            snapshot,
            self._remembering(snapshot),
            self.principal,
            memoise=self.memoise,
            journal=self.journal,
        )

    def _remembering(self, snapshot: Snapshot) -> Consent:
        def contract_hash(tool: ToolId) -> str:
            known = snapshot.get(tool)
            return "" if known is None else known.contract_hash

        return Remembered(self.consent, self.store.approvals(self.principal).approvals, contract_hash)

    def options(
        self, task: str | None = None, route: str | None = None, reasons: tuple[str, ...] = ()
    ) -> RunOptions:
        """Return how workflows are run for this bank, with what a trace tells of why."""
        return RunOptions(
            task=task,
            route=route,
            route_reasons=reasons,
            listener=self.progress,
            skills=self.skill_workflow,
            clock=self.clock,
            redact=self.redact,
            spill=self.spill,
            sandbox=self.sandbox,
        )

    @property
    def recorder(self) -> Recorder:
        """What makes values fit to be stored or shown."""
        return Recorder(self.redact, self.spill)

    def skill_workflow(self, name: str, version: int) -> Workflow | None:
        """Return the body of a stored skill version, None when there is none that may be called."""
        skill = self.store.version(name, version)
        return skill.workflow if skill is not None and skill.state not in UNUSABLE else None

    def changes_of(self, server: str) -> tuple[str, ...]:
        """Return in words what changed about a server's tools since this process began."""
        return self.notes.told_of(server)

    def keep_seen(self, servers: Iterable[str]) -> None:
        """Take up what servers list and speak now; store it and tell of it where it differs from before."""
        links = {
            name: link
            for name in servers
            if (link := self.connections.connection(name)) is not None and not self._seen.is_kept(name, link)
        }
        if not links:
            return
        known = self.connections.known
        listed = {n: known.of_server(n) for n, link in links.items() if link.tools or self.is_ready(n)}
        self.notes.note(listed, self.store, self.clock())
        if self._seen.eras is None:
            self._seen.eras = known_eras(self.store, self.config)
        eras: dict[str, Era] = {name: link.era for name, link in links.items() if link.era is not None}
        found: dict[str, Era] = {n: era for n, era in eras.items() if self._seen.eras.get(n) != era}
        if found:
            save_eras(found, self.store, self.config, self.clock())
            self._seen.eras.update(found)
        self._seen.kept.update(
            {name: _Kept(link.tools, link.era) for name, link in links.items() if link.tools}
        )


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
