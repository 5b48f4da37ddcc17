"""A proposal: edits that belong together, with a cost and the evidence that chose them."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from server.planning.slots import Source
from skills_store.workflow.edits import Edit

__all__ = ["Proposal", "cheapest", "cheapest_combinations", "propose_one"]


@dataclass(frozen=True, slots=True)
class Proposal:
    """Edits to apply in order. `cost` is −ln of a rough prior, ≥ 0; costs add up along a lineage."""

    edits: tuple[Edit, ...]
    cost: float
    anew: bool = False
    """Whether it is another plan of the whole: what the parent leaves undone says nothing of it."""


def propose_one(edit: Edit, cost: float) -> Proposal:
    """Return the proposal of a single edit."""
    return Proposal((edit,), max(0.05, cost))


def cheapest(proposals: Iterable[Proposal], limit: int) -> list[Proposal]:
    """Return the cheapest proposals, equal edits once, ties in order of appearance."""
    seen: dict[str, Proposal] = {}
    for proposal in proposals:
        key = "|".join(edit.model_dump_json(exclude={"because"}) for edit in proposal.edits)
        if key not in seen or proposal.cost < seen[key].cost:
            seen[key] = proposal
    return sorted(seen.values(), key=lambda proposal: proposal.cost)[:limit]


def cheapest_combinations(
    choices: Sequence[Sequence[Source]], limit: int
) -> Iterator[tuple[tuple[Source, ...], float]]:
    """Yield one source per slot, in order of total cost, at most `limit` combinations.

    Each inner sequence must be sorted by cost; an empty one yields nothing.
    """
    if not all(choices):
        return
    start: tuple[int, ...] = (0,) * len(choices)
    queue: list[tuple[float, tuple[int, ...]]] = [(sum(options[0].cost for options in choices), start)]
    seen: set[tuple[int, ...]] = {start}
    for _ in range(limit):
        if not queue:
            return
        cost, picked = heapq.heappop(queue)
        yield tuple(options[i] for options, i in zip(choices, picked, strict=True)), cost
        for slot, index in enumerate(picked):
            following = (*picked[:slot], index + 1, *picked[slot + 1 :])
            if index + 1 < len(choices[slot]) and following not in seen:
                seen.add(following)
                step = choices[slot][index + 1].cost - choices[slot][index].cost
                heapq.heappush(queue, (cost + step, following))
