"""Takes tool servers in: starts each once, and proposes what its tools do to the world.

Whether the proposal is taken is asked by the border; where it is kept is `catalog.config`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from catalog.config import Config, ServerSpec
from catalog.effects import Effect, Reset
from catalog.era import KnownEra
from catalog.errors import NEEDS_LOGIN
from catalog.tools import Snapshot, Tool
from server.eras import era_of
from server.reports import EffectsReport, ToolEffect
from server.settings import Settings

if TYPE_CHECKING:
    from catalog.connection_report import ConnectionReport
    from server.reset_trial import ResetTrial, TrialVerdict

__all__ = [
    "Probed",
    "ServerProposal",
    "compact_classes",
    "probe_servers",
    "propose_profile",
    "remember_tools",
    "try_reset_of",
]


@dataclass(frozen=True, slots=True)
class Probed:
    """One server after it was started once."""

    name: str
    status: Literal["ok", "problems", "unreachable"]
    tools: tuple[Tool, ...] = ()
    problems: tuple[str, ...] = ()
    seconds: float = 0.0
    era: KnownEra | None = None
    """What it speaks, None when unreachable."""

    @property
    def needs_login(self) -> bool:
        """Whether it would be reached if somebody logged in."""
        return any(NEEDS_LOGIN in problem for problem in self.problems)


@dataclass(frozen=True, slots=True)
class ServerProposal:
    """What the tools of one server are thought to do, and how its state is restored."""

    server: str
    effects: tuple[ToolEffect, ...]
    reset: Reset
    reset_reason: str
    classes: Mapping[str, Effect] = field(default_factory=dict[str, Effect])
    """As it would be kept: by tool name or pattern."""

    def to_report(self) -> EffectsReport:
        """Return the proposal under the stable keys."""
        return EffectsReport(effects=self.effects, reset={self.server: self.reset})


async def probe_servers(specs: Sequence[ServerSpec], settings: Settings) -> list[Probed]:
    """Start each server once, list its tools, end it, and return them in the same order.

    A server that cannot be started is a value like any other. Nothing is called but the listing.
    """
    from catalog.connections import open_connections

    config = Config(servers={spec.name: spec for spec in specs}).keeping(settings.open_secrets())
    async with open_connections(config, environment=settings.environment, spares=False) as connections:
        await connections.snapshot()
        reports = {report.name: report for report in connections.reports()}
    return [_probed(spec, reports[spec.name]) for spec in specs]


def _probed(spec: ServerSpec, report: ConnectionReport) -> Probed:
    reached = "problems" if report.findings else "ok"
    return Probed(
        name=report.name,
        status=reached if report.status == "ready" else "unreachable",
        tools=report.tools,
        problems=report.findings,
        seconds=report.seconds or 0.0,
        era=None if report.era is None else era_of(spec, report.era),
    )


def remember_tools(probed: Sequence[Probed], settings: Settings) -> None:
    """Put the listed tools of these servers in the store's snapshot, those of others kept, and their eras.

    Raises:
        StoreUnusable: the store cannot be opened.
    """
    from skills_store.sqlite import open_sqlite_store

    settings.store_path.parent.mkdir(parents=True, exist_ok=True)
    store = open_sqlite_store(settings.store_path)
    try:
        listed = {server.name for server in probed if server.status != "unreachable"}
        kept = {tool.id: tool for tool in store.snapshot() if tool.id.server not in listed}
        found = {tool.id: tool for server in probed for tool in server.tools}
        store.save_snapshot(Snapshot(MappingProxyType({**kept, **found})), time.time())
        store.check_contracts({tool.id: tool.contract_hash for tool in found.values()})
        store.save_eras({s.name: s.era for s in probed if s.era is not None}, time.time())
    finally:
        store.close()


def propose_profile(probed: Probed) -> ServerProposal:
    """Return what the tools of a listed server are thought to do, each with its reason."""
    from catalog.effect_profile import propose_effect, propose_reset

    proposals = [propose_effect(tool) for tool in probed.tools]
    effects = tuple(
        ToolEffect(server=probed.name, tool=p.tool.tool, effect=p.effect, reason=p.reason) for p in proposals
    )
    reset, reason = propose_reset(probed.tools)
    return ServerProposal(
        server=probed.name,
        effects=effects,
        reset=reset,
        reset_reason=reason,
        classes=compact_classes({effect.tool: effect.effect for effect in effects}),
    )


def compact_classes(classes: Mapping[str, Effect]) -> dict[str, Effect]:
    """Return the entries to keep for these classes of one server's tools.

    Tools that may repeat stand by name, never under a pattern: a tool that the server adds later
    must not become repeatable unseen. Where all others are writes, one `*` says so. What is
    unknown is left out.
    """
    free = {tool: effect for tool, effect in classes.items() if effect.is_free}
    others = {tool: effect for tool, effect in classes.items() if not effect.is_free}
    if others and all(effect is Effect.WRITE for effect in others.values()):
        return {**free, "*": Effect.WRITE}
    return {**free, **{tool: e for tool, e in others.items() if e is Effect.WRITE}}


async def try_reset_of(trial: ResetTrial, settings: Settings) -> TrialVerdict:
    """Try a reset mode of one server in fresh processes of its own."""
    from catalog.connections import open_connections
    from server.reset_trial import try_reset

    config = Config(servers={trial.spec.name: trial.spec}).keeping(settings.open_secrets())
    async with open_connections(config, environment=settings.environment, spares=False) as connections:
        return await try_reset(connections, trial, settings.environment)
