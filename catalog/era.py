"""The protocol eras, and what is remembered of the one that a server speaks.

Finding it out costs a server of the handshake era a start, and one that ignores what it does not
know ten seconds: so it is found once and kept with the way the server is started, which is what it
was found for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Era", "KnownEra"]

Era = Literal["legacy", "modern"]
"""The handshake era (up to 2025-11-25), and the one after it."""


@dataclass(frozen=True, slots=True)
class KnownEra:
    """What one server was found to speak."""

    era: Era
    launch: str
    """Digest of how it was started: said of another start it means nothing."""
