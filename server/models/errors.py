"""What keeps a local model from being there or from running, as typed errors.

ModelError
├── UnknownModel        nobody knows a model of that name
├── NotFetched          the weights or the runtime are not on this machine yet
├── FetchFailed         the weights could not be had
│   ├── SourceUnusable  nobody answers there, or it no longer has them
│   └── WrongContent    what came is not what was pinned
├── NoSpace             the disk is too full
├── BuildFailed         llama-server could not be built here
└── ServerFailed        llama-server did not start, or ended by itself
    └── PortTaken       somebody else has the port

Each message names the remedy.
"""

from __future__ import annotations

__all__ = [
    "BuildFailed",
    "FetchFailed",
    "ModelError",
    "NoSpace",
    "NotFetched",
    "PortTaken",
    "ServerFailed",
    "SourceUnusable",
    "UnknownModel",
    "WrongContent",
]


class ModelError(Exception):
    """Anything that keeps a local model from being used."""


class UnknownModel(ModelError):  # noqa: N818
    """A name that is neither a known model nor a file of weights."""


class NotFetched(ModelError):  # noqa: N818
    """The weights, or the runtime, are not here yet."""


class FetchFailed(ModelError):  # noqa: N818
    """The weights could not be had from a source."""


class SourceUnusable(FetchFailed):
    """A source that nobody answers for, or that does not have the weights (any more)."""


class WrongContent(FetchFailed):
    """What a source gave is not what was pinned; it was removed."""


class NoSpace(ModelError):  # noqa: N818
    """There is too little room on the disk."""


class BuildFailed(ModelError):  # noqa: N818
    """The runtime could not be built; the message has the last lines of the build."""


class ServerFailed(ModelError):  # noqa: N818
    """The runtime did not start, or ended by itself; the message has its last words."""


class PortTaken(ServerFailed):
    """Somebody else has the port it should answer on."""
