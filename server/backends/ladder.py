"""From the strictest form of a structured answer down to the loosest that a server takes.

A schema that is refused costs a rung, never the request; where a schema ended is remembered.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from catalog.canonical import digest
from catalog.tools import JsonSchema
from server.backends.attempts import Setback
from server.backends.backend import Constraint
from server.backends.errors import ContextTooLong

__all__ = ["PLAIN", "Form", "Ladder"]

_T = TypeVar("_T")

_REFUSED = frozenset({400, 422, 501})


@dataclass(frozen=True, slots=True)
class Form:
    """One way to have an answer of a given form."""

    name: str
    constraint: Constraint


PLAIN = Form("text", "none")
"""No constraint: the prompt alone says what is wanted."""


class Ladder:
    """Remembers down to which form each schema had to go.

    Args:
        blamed: statuses of HTTP that may mean that the form was refused.
    """

    def __init__(self, blamed: frozenset[int] = _REFUSED) -> None:
        self.blamed = blamed
        self._lowered: dict[str, str] = {}

    async def descend(
        self, schema: JsonSchema | None, forms: Sequence[Form], ask: Callable[[Form], Awaitable[_T]]
    ) -> tuple[_T, Form]:
        """Return the answer in the strictest form that is taken, and which that was.

        Args:
            schema: of the answer, None for text.
            forms: strictest first; the last is the one that must do.
            ask: asks once in a form.

        Raises:
            Setback: it is not the form that was refused, or all were.
        """
        if schema is None:
            return await ask(PLAIN), PLAIN
        key = digest(schema)
        names = [form.name for form in forms]
        lowered = self._lowered.get(key)
        start = names.index(lowered) if lowered in names else 0
        for place, form in enumerate(forms[start:], start):
            try:
                answer = await ask(form)
            except Setback as setback:
                if place == len(forms) - 1 or not self.blames(setback):
                    raise
                continue
            if place > start:
                self._lowered[key] = form.name
            return answer, form
        raise AssertionError("the last form returns or raises")

    def blames(self, setback: Setback) -> bool:
        """Return whether a setback may mean that the form was refused."""
        return setback.status in self.blamed and not isinstance(setback.error, ContextTooLong)
