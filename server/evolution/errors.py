"""What can be wrong with the record of a search, as typed errors.

RecordError
├── RecordExists       a new record would be written over another
├── RecordMismatch     it is of another workflow, task, checks or seed
└── RecordUnreadable   there is no such file, or it is no record, or broken before its end
"""

from __future__ import annotations

__all__ = ["RecordError", "RecordExists", "RecordMismatch", "RecordUnreadable"]


class RecordError(Exception):
    """Anything wrong with a record; nothing was run."""


class RecordExists(RecordError):  # noqa: N818
    """A new record would be written over another."""


class RecordMismatch(RecordError):  # noqa: N818
    """A record of another search cannot be gone on with; the message says what differs."""


class RecordUnreadable(RecordError):  # noqa: N818
    """It cannot be read; the message says where and what helps."""
