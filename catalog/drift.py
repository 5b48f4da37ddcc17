"""What changed between two snapshots; which skills that touches is for their store to say."""

from __future__ import annotations

from dataclasses import dataclass

from catalog.tools import Snapshot, ToolId

__all__ = ["Drift", "compare", "render_drift"]


@dataclass(frozen=True, slots=True)
class Drift:
    """The tools that differ, each field ordered by id. A tool stands in one field only."""

    added: tuple[ToolId, ...] = ()
    removed: tuple[ToolId, ...] = ()
    changed: tuple[ToolId, ...] = ()
    """Another contract: name, schemas or annotations. Skills that pin it become stale."""
    reworded: tuple[ToolId, ...] = ()
    """Same contract, other title or description."""

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed or self.reworded)

    @property
    def broken(self) -> frozenset[ToolId]:
        """Tools whose pinned contract no longer holds."""
        return frozenset((*self.removed, *self.changed))


def compare(before: Snapshot, after: Snapshot) -> Drift:
    """Return what a later snapshot has changed against an earlier one."""
    kept = sorted(before.tools.keys() & after.tools.keys())
    changed = [t for t in kept if before.tools[t].contract_hash != after.tools[t].contract_hash]
    reworded = [t for t in kept if before.tools[t].prose_hash != after.tools[t].prose_hash]
    return Drift(
        added=tuple(sorted(after.tools.keys() - before.tools.keys())),
        removed=tuple(sorted(before.tools.keys() - after.tools.keys())),
        changed=tuple(changed),
        reworded=tuple(t for t in reworded if t not in changed),
    )


def render_drift(drift: Drift, shown: int = 5) -> str:
    """Return in words what changed, at most so many tools of each kind by name."""
    kinds = (
        ("new", drift.added),
        ("gone", drift.removed),
        ("changed", drift.changed),
        ("described otherwise", drift.reworded),
    )
    said: list[str] = []
    for kind, tools in kinds:
        if tools:
            names = ", ".join(tool.tool for tool in tools[:shown])
            more = f" and {len(tools) - shown} more" if len(tools) > shown else ""
            said.append(f"{kind}: {names}{more}")
    return "; ".join(said)
