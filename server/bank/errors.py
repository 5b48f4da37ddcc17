"""What the bank refuses to do, as typed errors.

BankError
├── SkillNotCallable   the skill is there and not in a state to be called
├── NotDecided         a person's word on a skill changed nothing
├── NotSaved           a skill cannot be kept under the name that was asked for
├── UnknownTrace       no run with this id is kept
└── UnknownExperience  no lesson with this id is kept
"""

from __future__ import annotations

__all__ = ["BankError", "NotDecided", "NotSaved", "SkillNotCallable", "UnknownExperience", "UnknownTrace"]


class BankError(Exception):
    """Anything the bank refuses."""


class SkillNotCallable(BankError):  # noqa: N818
    """The skill is there and not in a state to be called; the message says why and what to do."""


class NotDecided(BankError):  # noqa: N818
    """A person's word on a skill changed nothing; the message says in which state it is, and why."""


class NotSaved(BankError):  # noqa: N818
    """A skill cannot be kept under the name that was asked for; nothing was run."""


class UnknownTrace(BankError, LookupError):  # noqa: N818
    """No run with this id is kept."""


class UnknownExperience(BankError, LookupError):  # noqa: N818
    """No lesson with this id is kept."""
