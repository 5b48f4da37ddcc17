"""What changed under a skill: its servers, and the contracts of the tools it is pinned to."""

from __future__ import annotations

from catalog.tools import Snapshot, ToolId
from server.bank.context import Context
from server.bank.publishing import refresh_published
from server.bank.running import static_faults
from skills_store.skill import Skill

__all__ = ["changed_pins", "mark_stale_if_changed", "missing_servers"]


def missing_servers(skill: Skill, context: Context) -> list[str]:
    """Return the servers a skill is pinned to that are not configured any more."""
    return sorted({pin.tool.server for pin in skill.pins} - context.config.servers.keys())


def changed_pins(skill: Skill, snapshot: Snapshot) -> list[ToolId]:
    """Return the pinned tools that are gone or have another contract; nothing of servers never listed."""
    return [
        pin.tool
        for pin in skill.pins
        if pin.tool.server in snapshot.servers and _contract(snapshot, pin.tool) != pin.contract_hash
    ]


def _contract(snapshot: Snapshot, tool: ToolId) -> str | None:
    known = snapshot.get(tool)
    return known.contract_hash if known is not None else None


def mark_stale_if_changed(skill: Skill, snapshot: Snapshot, context: Context) -> str | None:
    """Return what changed under a skill, which is then stale; None when its pins hold."""
    changed = changed_pins(skill, snapshot)
    if not changed:
        return None
    reason = _said(skill, changed, snapshot, context)
    now = context.store.version(skill.name, skill.version)
    if now is not None and now.state in ("active", "context_only"):
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
