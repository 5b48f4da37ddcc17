"""Why the environment service refuses or cannot do something, under the codes that clients see.

EnvironmentFailure
├── BadRequest        the client sent what cannot be read, or asked for what is not there
├── AtCapacity        no more instances at once
└── WorkerFailed      one instance's process is gone or did not answer; others are untouched
"""

from __future__ import annotations

__all__ = ["AtCapacity", "BadRequest", "EnvironmentFailure", "WorkerFailed"]


class EnvironmentFailure(Exception):  # noqa: N818
    """The message names the place and the remedy.

    Attributes:
        code: stable word for programs.
        status: of an HTTP answer.
    """

    code = "ENVIRONMENT"
    status = 500


class BadRequest(EnvironmentFailure):
    """The client can mend it."""

    code = "BAD_REQUEST"
    status = 400

    def __init__(self, message: str, *, code: str = "BAD_REQUEST", status: int = 400) -> None:
        super().__init__(message)
        self.code = code
        self.status = status


class AtCapacity(EnvironmentFailure):
    """As many instances as are allowed are in use."""

    code = "AT_CAPACITY"
    status = 429


class WorkerFailed(EnvironmentFailure):
    """The process of one instance ended, hung, or said what cannot be read."""

    code = "WORKER_FAILED"
    status = 502
