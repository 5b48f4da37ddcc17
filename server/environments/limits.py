"""What the environment service spends at most."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Limits"]


@dataclass(frozen=True, slots=True)
class Limits:
    """What the service spends at most."""

    instances: int = 32
    """At once, of all environments."""
    steps: int = 200
    """Of one episode; one more truncates it."""
    message_bytes: int = 4 * 2**20
    """Of one message, either way."""
    idle_seconds: float = 3600.0
    """After which an instance that nobody uses is ended."""
    reset_seconds: float = 120.0
    step_seconds: float = 120.0
    kept_groups: int = 1000
    """Groups of finished episodes, the oldest forgotten first."""
