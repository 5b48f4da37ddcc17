"""What changed between two snapshots; which skills that touches is for their store to say."""

from __future__ import annotations

from dataclasses import dataclass

from catalog.tools import Snapshot, ToolId

__all__ = ["Drift", "compare"]


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
