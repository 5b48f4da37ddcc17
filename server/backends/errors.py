"""What keeps a model from answering, as typed errors.

BackendError
├── BackendMisconfigured   no key, unknown model, a wire that was asked for what it cannot do
├── BackendUnavailable     nobody answers, or the answer broke off, after the retries
├── BackendOverloaded      told to come back later, after the retries
├── BackendTimeout         the deadline passed
├── ContextTooLong         the prompt does not fit the model
└── SamplingUnsupported    the MCP client has no model to lend
"""

from __future__ import annotations

__all__ = [
    "BackendError",
    "BackendMisconfigured",
    "BackendOverloaded",
    "BackendTimeout",
    "BackendUnavailable",
    "ContextTooLong",
    "SamplingUnsupported",
]


class BackendError(Exception):
    """Anything that keeps a model from answering. The message names the backend and the remedy."""


class BackendMisconfigured(BackendError):  # noqa: N818
    """Asking again changes nothing: no key, an unknown model, or a request that the wire refuses."""


class BackendUnavailable(BackendError):  # noqa: N818
    """Nobody answers, or the answer broke off; retries are spent."""


class BackendOverloaded(BackendError):  # noqa: N818
    """The provider said to come back later; retries are spent."""


class BackendTimeout(BackendError):  # noqa: N818
    """The deadline of the request passed."""


class ContextTooLong(BackendError):  # noqa: N818
    """The prompt does not fit the context of the model."""


class SamplingUnsupported(BackendError):  # noqa: N818
    """The MCP client that was to lend its model has none."""
