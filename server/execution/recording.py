"""Turns what happened into what a trace may hold: secrets taken out, large values bounded.

The full values stay in the run's memory; only this module builds the records that are stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import anyio.to_thread

from catalog.canonical import JsonValue
from catalog.schema import Coerced
from catalog.size import is_large
from server.execution.spill import Bounded, Redact, Spill, bounded
from skills_store.trace import Coercion
from skills_store.workflow.faults import Fault, fault_adapter

__all__ = ["Recorder"]


@dataclass(frozen=True, slots=True)
class Recorder:
    """Makes values fit for a trace."""

    redact: Redact
    spill: Spill | None = None

    def value(self, value: JsonValue) -> Bounded:
        """Return one value as a trace keeps it.

        Raises:
            ValueError: it is no JSON value.
        """
        return bounded(self.redact(value), self.spill)

    async def large_value(self, value: JsonValue) -> Bounded:
        """Return what `value` says; of a large value in a thread, so that others go on meanwhile.

        Raises:
            ValueError: it is no JSON value.
        """
        if not is_large(value):
            return self.value(value)
        return await anyio.to_thread.run_sync(self.value, value)

    async def large_values(self, named: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        """Return what `values` says, off the event loop as `large_value` does."""
        if not is_large(dict(named)):
            return self.values(named)
        return await anyio.to_thread.run_sync(self.values, named)

    async def large_content(self, blocks: list[JsonValue]) -> list[JsonValue]:
        """Return what `content` says, off the event loop as `large_value` does."""
        if not is_large(blocks):
            return self.content(blocks)
        return await anyio.to_thread.run_sync(self.content, blocks)

    def values(self, named: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        """Return named values, each bounded for itself; a name may be a secret too."""
        shown = self.redact(dict(named))
        assert isinstance(shown, dict)
        return {name: self._shown(value) for name, value in shown.items()}

    def content(self, blocks: list[JsonValue]) -> list[JsonValue]:
        """Return content blocks, each bounded for itself."""
        return [self._shown(self.redact(block)) for block in blocks]

    def _shown(self, value: JsonValue) -> JsonValue:
        try:
            return bounded(value, self.spill).value
        except ValueError as error:  # lone surrogates, which a record could not be stored with
            return f"(no JSON value: {error})"

    def coercions(self, changes: Iterable[Coerced]) -> tuple[Coercion, ...]:
        """Return the coercions of one call."""
        return tuple(
            Coercion(
                pointer=change.pointer,
                before=self.value(change.before).value,
                after=self.value(change.after).value,
            )
            for change in changes
        )

    def fault(self, fault: Fault) -> Fault:
        """Return a fault as a trace keeps it."""
        shown = self.redact(fault_adapter.dump_python(fault, mode="json"))
        assert isinstance(shown, dict)
        bound = {
            name: bounded(value, self.spill).value if name in _FREE else value
            for name, value in shown.items()
        }
        return fault_adapter.validate_python(bound)


_FREE = frozenset({"found", "arguments"})
"""Fields of faults that hold values of any size."""
