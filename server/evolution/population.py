"""The population search: parents by intensity, survivors by structure, guidance when it stagnates.

Paper: EvoFlux (search loop; facts §1.5). Differs: a generation holds several children, told together,
so that they can be evaluated at once and the search stays deterministic; a child that is infeasible
stays on record and may be built upon; what the growth statistic does wrong in the public code is
mended in `server.evolution.growth`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from random import Random

from server.evolution.building import base_candidate
from server.evolution.candidate import Mode, Record, fittest
from server.evolution.growth import Growth, intensity
from server.evolution.options import SearchOptions
from server.evolution.selection import select_parent, survivors
from server.evolution.strategy import Order
from skills_store.workflow.model import Workflow

__all__ = ["Greedy", "Population"]

_WORST = 3
"""Records that guidance is shown to keep away from: the paper's."""


@dataclass
class Population:
    """A `Strategy` that evolves the best few candidates."""

    base: Workflow
    options: SearchOptions = field(default_factory=SearchOptions)
    name: str = "population"
    growth: Growth = field(default_factory=Growth)
    members: list[Record] = field(default_factory=list[Record])
    """Survivors, the fittest first."""
    generation: int = 0
    _asked: int = 0
    _planned: list[Order] = field(default_factory=list[Order])
    _waiting: set[int] = field(default_factory=set[int])
    _told: dict[int, Record | None] = field(default_factory=dict[int, Record | None])

    def take(self, record: Record) -> None:
        """Begin with what was evaluated before: it is the first population, no growth."""
        self.members = survivors([*self.members, record], self.options)
        best = max(self.growth.best, record.evaluation.fitness.progress)
        self.growth = Growth(best=best)

    def ask(self, count: int) -> list[Order]:
        """Return up to `count` orders of the generation; none while it waits, or after the last one."""
        if not self.members and not self._asked:
            return self._begun() if count else []
        if not self._planned and not self._waiting:
            self._close()
            self._open()
        given, self._planned = self._planned[:count], self._planned[count:]
        self._waiting.update(order.number for order in given)
        return given

    def tell(self, order: Order, record: Record | None) -> None:
        """Keep what became of an order until its generation is complete."""
        self._waiting.discard(order.number)
        if order.mode == "base" and record is not None:
            self.take(record)
        else:
            self._told[order.number] = record

    def _begun(self) -> list[Order]:
        (order,) = self._numbered([Order(0, "base", base_candidate(self.base))])
        self._waiting.add(order.number)
        return [order]

    def _close(self) -> None:
        """Take in a whole generation at once, in the order it was asked for."""
        if not self._told:
            return
        born = [record for _, record in sorted(self._told.items()) if record is not None]
        self._told = {}
        before = self.members[0].evaluation.fitness
        for record in born:
            self.growth = self.growth.scored(record.evaluation.fitness.progress, self.options.smoothing)
        self.members = survivors([*self.members, *born], self.options)
        self.growth = self.growth.passed(improved=self.members[0].evaluation.fitness > before)

    def _open(self) -> None:
        if self.generation >= self.options.generations or not self.members:
            return
        self.generation += 1
        draw = Random(f"{self.options.seed}:{self.name}:{self.generation}")
        orders = [*self._guidance()]
        orders += [self._child(draw) for _ in range(self.options.children - len(orders))]
        self._planned = self._numbered(orders)

    def _guidance(self) -> Sequence[Order]:
        if not self.options.switches.meta_guidance or not self.growth.wants_guidance(self.options):
            return ()
        self.growth = self.growth.guided(self.options)
        return (self._order("meta", self.members[0], tuple(self.members[1:][-_WORST:])),)

    def _child(self, draw: Random) -> Order:
        chance = intensity(self.growth, self.options)
        parent = select_parent(self.members, chance, self.options, draw)
        if draw.random() < chance:
            return self._order("explore", parent)
        others = [member for member in self.members if member is not parent]
        if others and draw.random() < self.options.crossover:
            return self._order("cross", parent, (draw.choice(others),))
        return self._order("exploit", parent)

    def _order(self, mode: Mode, parent: Record, others: tuple[Record, ...] = ()) -> Order:
        return Order(
            number=0,
            mode=mode,
            parent=parent,
            others=others,
            generation=self.generation,
            growth=self.growth.statistic,
            intensity=intensity(self.growth, self.options),
        )

    def _numbered(self, orders: Sequence[Order]) -> list[Order]:
        first, self._asked = self._asked, self._asked + len(orders)
        return [
            replace(order, number=n, seed=f"{self.options.seed}:{self.name}:{n}")
            for n, order in enumerate(orders, first)
        ]

    @property
    def best(self) -> Record:
        """The fittest member.

        Raises:
            ValueError: nothing was told yet.
        """
        return fittest(self.members)


class Greedy(Population):
    """A population of one: a child replaces its parent when it is fitter. For comparison only."""

    def __init__(self, base: Workflow, options: SearchOptions | None = None) -> None:
        super().__init__(base, (options or SearchOptions()).greedy(), name="greedy")
