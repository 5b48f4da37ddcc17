"""What changed under a skill: its servers, and the contracts of the tools it is pinned to."""

from __future__ import annotations

import logging

from catalog.drift import Drift
from catalog.tools import Snapshot, ToolId
from server.bank.context import Context
from server.bank.engines import changed_engines
from server.bank.publishing import refresh_published
from server.bank.running import static_faults
from server.progress import Progress
from skills_store.skill import Skill, SkillState

__all__ = ["changed_pins", "follow_drift", "mark_stale_if_changed", "missing_servers"]

_LOG = logging.getLogger(__name__)
_IN_USE: frozenset[SkillState] = frozenset({"active", "context_only"})


def missing_servers(skill: Skill, context: Context) -> list[str]:
    """Return the servers a skill is pinned to that are not configured any more."""
    return sorted({pin.tool.server for pin in skill.pins} - context.config.servers.keys())


def changed_pins(skill: Skill, snapshot: Snapshot, context: Context) -> list[ToolId]:
    """Return the pinned tools that are gone or have another contract; nothing of servers never listed."""
    return [
        pin.tool
        for pin in skill.pins
        if (pin.tool.server in snapshot.servers or context.is_ready(pin.tool.server))
        and _contract(snapshot, pin.tool) != pin.contract_hash
    ]


def follow_drift(drift: Drift, context: Context) -> None:
    """Make every skill in use stale that is pinned to a tool that changed or vanished."""
    if not drift.broken:
        return
    snapshot = context.known()
    for skill in context.store.heads():
        if skill.state not in _IN_USE or not any(pin.tool in drift.broken for pin in skill.pins):
            continue
        reason = mark_stale_if_changed(skill, snapshot, context)
        if reason is not None:
            _LOG.warning("skill %s@%d is stale: %s", skill.name, skill.version, reason)
            context.progress(Progress("drift", f"{skill.name}@{skill.version} is stale: {reason}"))


def _contract(snapshot: Snapshot, tool: ToolId) -> str | None:
    known = snapshot.get(tool)
    return known.contract_hash if known is not None else None


def mark_stale_if_changed(skill: Skill, snapshot: Snapshot, context: Context) -> str | None:
    """Return what changed under a skill, which is then stale; None when its pins hold."""
    changed, engines = changed_pins(skill, snapshot, context), changed_engines(skill, context)
    if not changed and engines is None:
        return None
    reason = _said(skill, changed, snapshot, context) if changed else str(engines)
    now = context.store.version(skill.name, skill.version)
    if now is not None and now.state in _IN_USE:
        context.store.move(skill.name, skill.version, "stale", reason=reason, by="system", at=context.clock())
        refresh_published(context)
    return reason


def _said(skill: Skill, changed: list[ToolId], snapshot: Snapshot, context: Context) -> str:
    gone = [str(tool) for tool in changed if snapshot.get(tool) is None]
    other = [str(tool) for tool in changed if snapshot.get(tool) is not None]
    said = [f"{', '.join(gone)} {'is' if len(gone) == 1 else 'are'} gone"] if gone else []
    said += [f"{', '.join(other)} changed since the skill was verified"] if other else []
    places = {node.id for node in skill.workflow.nodes if node.tool in changed}
    broken = [f.message for f in static_faults(skill.workflow, snapshot, context) if f.node in places]
    why = f" ({'; '.join(broken[:3])})" if broken and other else ""
    return " and ".join(said) + why
