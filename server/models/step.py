"""How far a long piece of work on a model is, told while it goes on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Report", "Step"]


@dataclass(frozen=True, slots=True)
class Step:
    """One moment of the work."""

    message: str
    """What is being done; equal as long as it is the same thing."""
    done: int = 0
    total: int = 0
    """0: the end is not known."""
    unit: str = ""
    """Of `done` and `total`: `B` for bytes, else a word."""


Report = Callable[[Step], None]
"""Is told each moment; must return at once."""
