"""The drafts of tasks that an exploration's calls give: which chains are distilled, and in what order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from server.exploration.breadth import first_successes
from server.exploration.chains import Chain, chain_of
from server.exploration.distilling import Draft, distil
from server.exploration.duplicates import TaskShape, is_near_duplicate, shape_of, shape_of_task
from server.exploration.equal_calls import volatile_tools
from server.exploration.observation import Observation
from server.exploration.options import ExplorationOptions
from server.exploration.scope import ExplorationScope
from server.exploration.states import Shown
from server.exploration.tasks import ExploredTask
from server.exploration.wording import word_task

__all__ = ["Drafting"]


@dataclass(frozen=True)
class Drafting:
    """Makes drafts of what was observed.

    Attributes:
        observations: in order.
        shown: by number of an observation, the state that it shows.
        scope: of the server.
        options: what kind of tasks is wanted.
        entities: what tools are about, by name.
    """

    observations: Sequence[Observation]
    shown: Mapping[int, Shown]
    scope: ExplorationScope
    options: ExplorationOptions
    entities: Mapping[str, str]

    def drafts(self, made: Sequence[ExploredTask] = ()) -> Iterator[Draft]:
        """Yield drafts, the hardest first, without near-duplicates of each other and of what was made."""
        kept: list[TaskShape] = [shape_of_task(task) for task in made]
        for draft in filter(None, self._candidates()):
            shape = shape_of(word_task(draft, draft.inputs), draft.workflow)
            if is_near_duplicate(shape, kept) or not self._is_wanted(draft):
                continue
            kept.append(shape)
            yield draft

    def _is_wanted(self, draft: Draft) -> bool:
        """Return whether a draft keeps to what a person wants of one task."""
        if draft.difficulty > self.options.difficulty:
            return False
        calls, entities = self.options.most_calls, self.options.most_entities
        about = {self.entities[tool] for tool in draft.chain.tools if tool in self.entities}
        return (calls is None or len(draft.chain.steps) <= calls) and (
            entities is None or len(about) <= entities
        )

    def _candidates(self) -> Iterator[Draft | None]:
        volatile = volatile_tools(self.observations, self.scope.changing)
        singles = first_successes(self.observations)
        singles.sort(key=lambda single: single.probe.tool.id.tool in volatile)
        alone = [distil(self._chain(single)) for single in singles]
        if self.options.difficulty == 3:
            linked = sorted(self._linked(), key=lambda c: (not volatile.isdisjoint(c.tools), *_plainness(c)))
            yield from _alternating([*self._of_states(), *map(distil, linked)], alone)
        if self.options.difficulty >= 2:
            yield from self._of_two(singles)
        yield from alone

    def _chain(self, last: Observation, extra: Sequence[int] = ()) -> Chain:
        return chain_of(last, self.observations, extra)

    def _of_states(self) -> list[Draft | None]:
        """Return drafts of what shows a change, the plainest first; what a fresh process says is left out."""
        chains = [
            (self._chain(self.observations[n], shown.changes), shown) for n, shown in self.shown.items()
        ]
        chains.sort(key=lambda entry: _plainness(entry[0]))
        return [distil(chain, unlike=shown.fresh, before=shown.before) for chain, shown in chains]

    def _linked(self) -> list[Chain]:
        """Return the chains in which an answer is read, without those of states."""
        valid = [o for o in self.observations if o.succeeded and not o.probe.breaks_schema]
        return [self._chain(o) for o in valid if o.probe.origins and o.number not in self.shown]

    def _of_two(self, singles: Sequence[Observation]) -> Iterator[Draft | None]:
        """Yield drafts of two calls that have nothing to do with each other."""
        for one, two in zip(singles[::2], singles[1::2], strict=False):
            if one.session == two.session or self.scope.is_stateless:
                yield distil(self._chain(two, (one.number,)), all_outputs=True)


def _plainness(chain: Chain) -> tuple[int, int]:
    """Return what orders chains: short ones first, and those later that call a tool again."""
    again = len(chain.tools) - len(set(chain.tools))
    return len(chain.steps) + again, chain.last.number


def _alternating(hard: Sequence[Draft | None], plain: Sequence[Draft | None]) -> Iterator[Draft | None]:
    """Yield drafts of chains and, after every second of them, one of a single call."""
    singles = iter(plain)
    for place, draft in enumerate(hard, 1):
        yield draft
        if place % 2 == 0:
            yield next(singles, None)
