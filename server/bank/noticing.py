"""What this process has noticed about the tools of each server: what is stored, what has changed since.

A tool's effect class was given to one contract of it; under another contract the class counts no more
until somebody looks again (`CONTRACTS`, Effects). Each difference is told once, to whoever follows.
"""

from __future__ import annotations

import logging
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from catalog.drift import Drift, compare, render_drift
from catalog.tools import Snapshot, Tool, ToolId
from skills_store.store import Store

__all__ = ["Follower", "ToolNotes"]

_LOG = logging.getLogger(__name__)
_CHANGES_KEPT = 20

Follower = Callable[[Drift], None]
"""Told of the tools of a server that differ from those it listed before."""


def _few() -> deque[str]:
    return deque(maxlen=_CHANGES_KEPT)


@dataclass
class ToolNotes:
    """One process's notes.

    Attributes:
        followers: told of every difference, each once.
    """

    followers: list[Follower] = field(default_factory=list[Follower])
    _stored: dict[str, tuple[Tool, ...]] | None = None
    _checked: dict[ToolId, str] = field(default_factory=dict[ToolId, str])
    _told: defaultdict[str, deque[str]] = field(default_factory=lambda: defaultdict[str, deque[str]](_few))
    _changed: frozenset[ToolId] = frozenset()

    def changed(self, store: Store) -> frozenset[ToolId]:
        """Return the tools that are not as they were when their effect class was last looked at."""
        self._read(store)
        return self._changed

    def told_of(self, server: str) -> tuple[str, ...]:
        """Return in words what changed about a server's tools while this process ran, oldest first."""
        return tuple(self._told[server]) if server in self._told else ()

    def note(self, listed: Mapping[str, tuple[Tool, ...]], store: Store, at: float) -> None:
        """Take up what servers list now: keep it where it is new, and tell what is different.

        Args:
            listed: the tools of each server, ordered by name; empty where it lists none.
            store: where tools and their contracts are kept.
            at: Unix seconds.
        """
        before = self._read(store)
        new = {server: tools for server, tools in listed.items() if before.get(server, ()) != tools}
        if not new:
            return
        drifts = {
            server: compare(Snapshot.of(*before[server]), Snapshot.of(*tools))
            for server, tools in new.items()
            if server in before
        }
        found = Snapshot.of(*(tool for tools in new.values() for tool in tools))
        store.save_snapshot(found, at, empty=[server for server, tools in new.items() if not tools])
        self._take_as_checked(found, before, store)
        before.update(new)
        self._compare_contracts()
        for server, drift in drifts.items():
            self._tell(server, drift)

    def recheck(self, tools: Iterable[Tool], store: Store) -> None:
        """Take the present contracts as those that the effect classes are meant for."""
        contracts = {tool.id: tool.contract_hash for tool in tools}
        store.check_contracts(contracts)
        self._read(store)
        self._checked.update(contracts)
        self._compare_contracts()

    def _read(self, store: Store) -> dict[str, tuple[Tool, ...]]:
        if self._stored is None:
            snapshot = store.snapshot()
            self._stored = {server: snapshot.of_server(server) for server in snapshot.servers}
            self._checked = store.checked_contracts()
            self._compare_contracts()
        return self._stored

    def _take_as_checked(
        self, tools: Iterable[Tool], before: Mapping[str, tuple[Tool, ...]], store: Store
    ) -> None:
        """Take a tool as it was first seen as the one that its class is meant for."""
        known = {tool.id: tool for listed in before.values() for tool in listed}
        first = {
            tool.id: known.get(tool.id, tool).contract_hash for tool in tools if tool.id not in self._checked
        }
        if first:
            store.check_contracts(first)
            self._checked.update(first)

    def _compare_contracts(self) -> None:
        self._changed = frozenset(
            tool.id
            for tools in (self._stored or {}).values()
            for tool in tools
            if self._checked.get(tool.id, tool.contract_hash) != tool.contract_hash
        )

    def _tell(self, server: str, drift: Drift) -> None:
        said = render_drift(drift)
        self._told[server].append(said)
        _LOG.warning("the tools of %s are not what they were: %s", server, said)
        for follower in self.followers:
            follower(drift)
