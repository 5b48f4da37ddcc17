"""What the demo refuses to start with.

FixtureError
└── DemoRefused   a folder or a story that cannot be used
"""

from __future__ import annotations

from server.fixtures.errors import FixtureError

__all__ = ["DemoRefused"]


class DemoRefused(FixtureError):  # noqa: N818  (read as a finding)
    """The demo cannot be run as asked; the message says why and what to do."""
