"""What the bank refuses to do, as typed errors.

BankError
├── SkillNotCallable   the skill is there and not in a state to be called
└── NotSaved           a skill was asked for and the run gives none
"""

from __future__ import annotations

__all__ = ["BankError", "NotSaved", "SkillNotCallable"]


class BankError(Exception):
    """Anything the bank refuses."""


class SkillNotCallable(BankError):  # noqa: N818
    """The skill is there and not in a state to be called; the message says why and what to do."""


class NotSaved(BankError):  # noqa: N818
    """A skill was asked for and the run gives none."""
