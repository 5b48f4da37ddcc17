"""Who becomes a parent, and who survives a generation.

Paper: EvoFlux (select_parent, prune; facts §1.5). Differs: the sixteen bins are of a structural
fingerprint instead of the hash of an action, which is as good as chance; exact duplicates are dropped
first; equal fitness is decided by cheaper edits and then by age.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import zip_longest
from random import Random

from server.evolution.candidate import Record, rank_of
from server.evolution.options import SearchOptions
from skills_store.workflow.hashing import shape_hash

__all__ = ["bin_of", "ranked", "select_parent", "survivors"]

BINS = 16


def ranked(records: Iterable[Record]) -> list[Record]:
    """Return records without exact duplicates, the fittest first."""
    unique: dict[str, Record] = {}
    for record in records:
        unique.setdefault(record.candidate.id, record)
    placed = list(enumerate(unique.values()))
    placed.sort(key=lambda one: rank_of(one[1], one[0]), reverse=True)
    return [record for _, record in placed]


def select_parent(
    population: Sequence[Record], chance: float, options: SearchOptions, draw: Random
) -> Record:
    """Return a parent: any with `chance` in [0, 1], else the winner of a tournament among the best.

    Args:
        population: the fittest first, at least one.
        chance: the intensity.
        options: size of the elite and of a tournament.
        draw: the order's own generator.
    """
    if draw.random() < chance:
        return draw.choice(population)
    elite = range(max(1, int(len(population) * options.elites)))
    return population[min(draw.sample(elite, min(options.tournament, len(elite))))]


def survivors(records: Iterable[Record], options: SearchOptions) -> list[Record]:
    """Return at most K records, the fittest first; with diversity, of every bin in turn."""
    best = ranked(records)
    if not options.switches.diversity:
        return best[: options.size]
    bins: dict[int, list[Record]] = {}
    for record in best:
        bins.setdefault(bin_of(record), []).append(record)
    in_turn = [record for row in zip_longest(*bins.values()) for record in row if record is not None]
    kept = {record.candidate.id for record in in_turn[: options.size]}
    return [record for record in best if record.candidate.id in kept]


def bin_of(record: Record) -> int:
    """Return the bin of a candidate's structure, in 0 to 15: literals, ids and order make no difference."""
    return int(shape_hash(record.candidate.workflow).rpartition(":")[2], 16) % BINS
