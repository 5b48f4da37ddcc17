"""Noticing that a model goes round in circles: steps that bring nothing it has not seen."""

from __future__ import annotations

from dataclasses import dataclass, field

from catalog.canonical import digest

__all__ = ["LoopWatch"]


@dataclass
class LoopWatch:
    """Remembers steps and what they came to."""

    allowed: int
    """Steps in a row that may bring nothing new."""
    _seen: dict[str, str] = field(default_factory=dict[str, str])
    _stale: int = 0

    def note(self, step: object, outcome: object, name: str) -> str | None:
        """Keep what a step came to; return the name of the earlier, equal one, None when it is new.

        Args:
            step: what was called with what.
            outcome: what came of it.
            name: under which the result is known.
        """
        key = digest([step, outcome])
        earlier = self._seen.get(key)
        if earlier is None:
            self._seen[key] = name
            self._stale = 0
            return None
        self._stale += 1
        return earlier

    @property
    def is_stuck(self) -> bool:
        """Whether too many steps in a row brought nothing new."""
        return self._stale >= self.allowed
