"""What the demo refuses to start with.

BenchError
└── DemoRefused   a folder or a story that cannot be used
"""

from __future__ import annotations

from server.bench.errors import BenchError

__all__ = ["DemoRefused"]


class DemoRefused(BenchError):  # noqa: N818  (read as a finding)
    """The demo cannot be run as asked; the message says why and what to do."""
