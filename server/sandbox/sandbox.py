"""The engines of one bank, by name, and the end of what they started."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from server.sandbox.engine import CodeOutcome, CodeRequest, Engine, Raised
from server.sandbox.monty_engine import MontyEngine
from server.sandbox.process_engine import ProcessEngine

__all__ = ["Sandbox", "Tried", "open_sandbox"]


@dataclass(frozen=True, slots=True)
class Tried:
    """What came of a function, and which engine ran it."""

    engine: Engine
    outcome: CodeOutcome


@dataclass(frozen=True, slots=True)
class Sandbox:
    """Engines in the order they are tried."""

    engines: Mapping[str, Engine]

    def engine(self, name: str) -> Engine | None:
        """Return the engine of that name, None when there is none."""
        return self.engines.get(name)

    async def first_able(self, request: CodeRequest) -> Tried:
        """Run a function in the first engine that has what it uses.

        Raises:
            SandboxUnavailable: an engine that would be next cannot be confined here.
        """
        tried: Tried | None = None
        for engine in self.engines.values():
            tried = Tried(engine, await engine.run(request))
            if not (isinstance(tried.outcome, Raised) and tried.outcome.is_unsupported):
                return tried
        if tried is None:
            raise ValueError("a sandbox has at least one engine")
        return tried


@asynccontextmanager
async def open_sandbox() -> AsyncGenerator[Sandbox]:
    """Open the engines; nothing is started before it is needed, and leaving ends all of it."""
    monty = MontyEngine()
    try:
        yield Sandbox({"monty": monty, "process": ProcessEngine()})
    finally:
        await monty.aclose()
