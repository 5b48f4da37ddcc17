"""The tasks of many skills, told apart by the words in them that no input takes.

A task can be a skill's only where it says all that the skill's own task says beside its values. So a
skill is looked up by the rarest of those words, and most of a bank is never read. Whether a task is
really the skill's, `router` decides.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from server.planning.router import example_of
from server.planning.task_pieces import Token
from server.planning.task_reading import TaskPattern, pattern_of, said_tokens, task_tokens
from skills_store.skill import Skill

__all__ = ["TaskPatterns", "same_pattern"]


class TaskPatterns:
    """The skills of a bank by what their own tasks say."""

    def __init__(self, skills: Iterable[Skill] = ()) -> None:
        self._skills: dict[str, Skill] = {}
        self._patterns: dict[str, TaskPattern] = {}
        self._said: dict[str, frozenset[Token]] = {}
        self._places: dict[str, Token | None] = {}
        self._by_token: defaultdict[Token | None, set[str]] = defaultdict(set)
        self.update(skills)

    def update(self, skills: Iterable[Skill]) -> None:
        """Make these the skills, one version of each name; what is the same object is not read again."""
        wanted = {skill.name: skill for skill in skills}
        for name in [name for name, skill in self._skills.items() if wanted.get(name) is not skill]:
            self._drop(name)
        for name, skill in wanted.items():
            if name not in self._skills:
                self._add(skill)

    def candidates(self, task: str) -> list[Skill]:
        """Return the skills whose own task a task may be with other values, ordered by name."""
        tokens = task_tokens(task)
        near = {name for token in (*tokens, None) for name in self._by_token.get(token, ())}
        return [self._skills[name] for name in sorted(near) if self._said[name] <= tokens]

    def likeness(self, task: str, skill: Skill) -> float:
        """Return how much a task and that of a kept skill say the same, values aside, in [0, 1]."""
        pattern = self._patterns.get(skill.name)
        return 0.0 if pattern is None else pattern.likeness(task)

    def _add(self, skill: Skill) -> None:
        self._skills[skill.name] = skill
        if not (own := skill.provenance.task):
            return
        self._patterns[skill.name] = pattern_of(own, example_of(skill))
        if (said := said_tokens(own, example_of(skill))) is None:
            return
        place = min(said, key=lambda token: (len(self._by_token.get(token, ())), token), default=None)
        self._said[skill.name], self._places[skill.name] = said, place
        self._by_token[place].add(skill.name)

    def _drop(self, name: str) -> None:
        del self._skills[name]
        self._patterns.pop(name, None)
        if self._said.pop(name, None) is not None:
            self._by_token[self._places.pop(name)].discard(name)


def same_pattern(task: str, skill: Skill) -> float:
    """Return how much a task and that of a skill say the same, values aside, in [0, 1]."""
    own = skill.provenance.task
    return pattern_of(own, example_of(skill)).likeness(task) if own else 0.0
