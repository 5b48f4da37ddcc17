"""What can be wrong with training data and with training, as typed errors.

TrainingError
├── NothingToExport     no task in the bank or the files given can be trained on
├── SourceUnreadable    a file is no record of a search and no report of a drive, or no training data
├── OutputUnusable      a file would be replaced, or cannot be written
└── TrainerUnusable     the trainer's packages are missing or foreign, or it failed
"""

from __future__ import annotations

__all__ = ["NothingToExport", "OutputUnusable", "SourceUnreadable", "TrainerUnusable", "TrainingError"]


class TrainingError(Exception):
    """Anything wrong with an export or a training; the message says what helps."""


class NothingToExport(TrainingError):  # noqa: N818
    """Nothing that was seen can be trained on."""


class SourceUnreadable(TrainingError):  # noqa: N818
    """A file cannot be read as what it was given as."""


class OutputUnusable(TrainingError):  # noqa: N818
    """Nothing was written, since something is in the way."""


class TrainerUnusable(TrainingError):  # noqa: N818
    """Training cannot be begun, or broke off."""
