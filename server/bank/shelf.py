"""The skills of a bank as this process last read them: heads, a search index, what their tasks say.

Read anew only when the store's revision has moved, and then only what is not as it was; so asking
costs one query of one number. Other processes move the revision too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from server.planning.patterns import TaskPatterns
from skills_store.retrieval import SkillIndex
from skills_store.skill import Skill, SkillState
from skills_store.store import Store

__all__ = ["Shelf"]

_FINDABLE: frozenset[SkillState] = frozenset({"active", "context_only"})


class Shelf:
    """What is kept of the heads of one store."""

    def __init__(self) -> None:
        self._revision: int | None = None
        self._heads: Mapping[str, Skill] = {}
        self._findable: Sequence[Skill] = ()
        self._index = SkillIndex()
        self._patterns = TaskPatterns()

    def heads(self, store: Store) -> list[Skill]:
        """Return the version in use of every name, ordered by name."""
        self._keep_up(store)
        return list(self._heads.values())

    def findable(self, store: Store) -> Sequence[Skill]:
        """Return what a search may find: what is active, and what is kept as guidance."""
        self._keep_up(store)
        return self._findable

    def index(self, store: Store) -> SkillIndex:
        """Return the search index over what may be found."""
        self._keep_up(store)
        return self._index

    def patterns(self, store: Store) -> TaskPatterns:
        """Return the heads by what their tasks say."""
        self._keep_up(store)
        return self._patterns

    def _keep_up(self, store: Store) -> None:
        # The number first: what changes meanwhile is read once more, never missed.
        revision = store.revision()
        if revision == self._revision:
            return
        before = self._heads
        heads = {head.name: _same(before.get(head.name), head) for head in store.heads()}
        self._heads = heads
        self._findable = tuple(head for head in heads.values() if head.state in _FINDABLE)
        self._index.update(self._findable)
        self._patterns.update(heads.values())
        self._revision = revision


def _same(known: Skill | None, head: Skill) -> Skill:
    """Return the object that is known, where nothing about the head has changed."""
    return known if known is not None and known == head else head
