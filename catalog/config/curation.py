"""How the bank is kept good, as configured: what is withheld, audited, kept, and how much of it."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CurationSpec"]


@dataclass(frozen=True)
class CurationSpec:
    """The `curation` part of the configuration."""

    withhold: float = 0.2
    """Part of the eligible episodes that does without the skill, to compare; 0: none."""
    error_rate: float = 0.01
    """Probability of a step against a skill that does no worse than its absence."""
    audit_every: int = 20
    """Uses of a skill after which its tests are run again; 0: only when something speaks against it."""
    unused_days: float = 60.0
    """Days without a use after which a skill is told to be unused."""
    most_active: int = 500
    """Active skills at most; those least useful are only kept as guidance past it. 0: no bound."""
    most_megabytes: float = 64.0
    """Size of all active skills together at most. 0: no bound."""
    keep_runs_days: float = 90.0
    """Days that traces of runs are kept. 0: until there are too many."""
    keep_recordings_days: float = 30.0
    """Days that calls made by hand are kept. 0: until there are too many."""
