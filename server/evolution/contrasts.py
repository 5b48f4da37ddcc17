"""What a search is worth as an example: its best candidate, and others that are clearly worse.

Paper: EvoFlux (teacher data; facts §1.8: the best per query, up to four negatives spread by structure
with a score gap). Differs: only what somebody's check verified is an example to follow, unless asked
otherwise; the gap is one of progress in [0, 1]. Making training files of it is the export's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from server.evolution.candidate import Record
from server.evolution.selection import ranked
from skills_store.workflow.hashing import shape_hash

__all__ = ["GAP", "MOST_REJECTED", "Contrast", "contrasts"]

MOST_REJECTED = 4
GAP = 0.1
"""Progress that a rejected candidate is behind at least."""


@dataclass(frozen=True, slots=True)
class Contrast:
    """One task's example: what to do, and what not to."""

    chosen: Record
    rejected: tuple[Record, ...] = ()
    """The nearest first, each of another structure before any structure comes twice."""


def contrasts(
    records: Sequence[Record],
    *,
    most: int = MOST_REJECTED,
    gap: float = GAP,
    verified_only: bool = True,
) -> Contrast | None:
    """Return the example that the records of one search make, None when they make none.

    Args:
        records: of one base, task and checks, in any order.
        most: rejected candidates at most.
        gap: in [0, 1].
        verified_only: whether the chosen one has to be verified by somebody's check.
    """
    best = ranked(records)
    if not best or (verified_only and not best[0].evaluation.verified):
        return None
    chosen, *others = best
    bar = chosen.evaluation.fitness.progress - gap
    worse = [
        record
        for record in others
        if record.evaluation.status != "verified" and record.evaluation.fitness.progress <= bar
    ]
    return Contrast(chosen, tuple(_spread(worse))[:most])


def _spread(records: Sequence[Record]) -> Iterator[Record]:
    """Yield one record of each structure, then seconds, and so on."""
    waiting = list(records)
    while waiting:
        taken: set[str] = set()
        left: list[Record] = []
        for record in waiting:
            shape = shape_hash(record.candidate.workflow)
            if shape in taken:
                left.append(record)
            else:
                taken.add(shape)
                yield record
        waiting = left
