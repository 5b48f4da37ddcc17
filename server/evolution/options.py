"""The options of a search: which strategy, every constant of it, and what an ablation switches off.

Bounds that are spent (seconds, calls, candidates, tokens) are `server.requests.Budget`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

__all__ = ["SearchOptions", "StrategyName", "Switches"]

StrategyName = Literal["auto", "ladder", "population", "greedy", "retry"]
"""`auto`: the ladder, and the population where a model can edit. `ladder`: deterministic edits, best
first. `population`: the paper's search. `greedy`: the same with a population of one. `retry`: the
base again and again, as it is."""


@dataclass(frozen=True, slots=True)
class Switches:
    """Parts of the mechanism, each of which a benchmark may switch off to see what it is worth."""

    memoisation: bool = True
    """Equal calls of free tools are made once. Belongs to the `Episode`, which whoever makes one asks
    for with `memoise=switches.memoisation`; the search itself cannot switch it."""
    diversity: bool = True
    """Survivors come from all bins of structure in turn; off: the fittest alone survive."""
    meta_guidance: bool = True
    """A stagnant search gets a plan from elsewhere."""
    growth_control: bool = True
    """Intensity follows growth; off: it stays half-way between its bounds."""
    attribution: bool = False
    """Credit of steps moves the costs of what is proposed. Off: it saved little where measured."""
    evidence: bool = True
    """Proposers see faults and answers of tools; off: they see workflow, task and tools alone."""


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """How a search goes about its work, apart from what it may spend.

    Paper: EvoFlux (facts §1.5: rho 0.9, intensity 0.1 to 0.7, threshold 0.12, cooldown a fifth of the
    generations, K 10 and B 5 of the README). Differs: a generation holds several children, so that they
    can be evaluated at once; the constants the code lacks (stagnation, growth's weight) are ours.
    """

    strategy: StrategyName = "auto"
    seed: int = 0
    """Draws everything that is drawn; equal seeds and answers give equal searches."""
    switches: Switches = field(default_factory=Switches)

    distance_weight: float = 0.4
    """Of the ladder: trades edit cost (nats) against one unmet node; measured on damaged plans."""
    max_depth: int = 12
    """Of the ladder: edits in a row. Plans have two to eight nodes, seldom more than one fault each."""
    ladder_first: bool = True
    """Whether the ladder goes before a population; off only to measure what a population does alone."""
    ladder_share: float = 0.5
    """Part of each budget that the ladder may spend before a population goes on from its records.

    The ladder mends nine in ten damaged plans within a few dozen candidates; half is ample for it.
    """

    size: int = 10
    """K, survivors of a generation: the README's. With two to eight nodes there are seldom more than
    ten structures worth keeping apart."""
    generations: int = 40
    """B, generations of the population at most. The paper's code has 5 to 40 by entry point; edits
    without a model cost nothing, so the largest is the default and the budget is what ends a search."""
    children: int = 3
    """Built from one state of the population and evaluated at once; the paper has one."""
    elites: float = 0.25
    """Best part of the population in which a tournament is held: the paper's quartile."""
    tournament: int = 5
    """Most that are drawn for one tournament: the paper's."""
    lowest_intensity: float = 0.1
    """Chance of exploring while the search grows fastest: the paper's."""
    highest_intensity: float = 0.7
    """Chance of exploring while it does not grow: the paper's."""
    smoothing: float = 0.9
    """rho, the weight of what growth was before: the paper's, a memory of about ten children."""
    growth_weight: float = 10.0
    """Factor on the root of growth in the intensity. The paper has 1, which with its gain unbounded
    sticks at the lowest intensity and with the gain clipped to 1 never leaves the upper quarter of the
    range; 10 lets one doubling of the best take intensity from 0.7 to about a quarter."""
    stagnation_threshold: float = 0.12
    """tau, growth below which a search may be called stagnant: the paper's."""
    stagnation_generations: int = 3
    """Generations without a better candidate before it is: the paper's code has none, so that its
    guidance always fires first."""
    cooldown: float = 0.2
    """Part of the generations for which no further guidance is given after one: the paper's."""
    explored_edits: int = 3
    """Most edits of one exploring child; the paper always makes three, which seldom all are sound."""
    crossover: float = 0.0
    """Chance that an exploiting child takes over another survivor's edits. Off unless it pays."""
    retries: int = 3
    """Times that `retry` runs the base again."""
    prompt_tokens: int = 3_000
    """Most tokens of one request for edits, catalog included: what small local models read in time."""
    answer_tokens: int = 500
    """Most tokens of one answer: three edits with their arguments."""

    def __post_init__(self) -> None:
        shares = (self.ladder_share, self.elites, self.smoothing, self.cooldown, self.crossover)
        if not all(0 <= share <= 1 for share in shares):
            raise ValueError("ladder_share, elites, smoothing, cooldown and crossover are in [0, 1]")
        if not 0 <= self.lowest_intensity <= self.highest_intensity <= 1:
            raise ValueError("intensities are in [0, 1], the lowest not above the highest")
        if min(self.size, self.children, self.tournament, self.explored_edits) < 1:
            raise ValueError("size, children, tournament and explored_edits are at least 1")
        if min(self.generations, self.retries, self.max_depth, self.stagnation_generations) < 0:
            raise ValueError("generations, retries, max_depth and stagnation_generations are not negative")

    def greedy(self) -> SearchOptions:
        """Return the same options with a population of one: what a population is compared with."""
        return replace(self, size=1)
