"""What the demo refuses to start with.

ProvisioningError
└── DemoRefused   a folder or a story that cannot be used
"""

from __future__ import annotations

from server.provisioning.errors import ProvisioningError

__all__ = ["DemoRefused"]


class DemoRefused(ProvisioningError):  # noqa: N818  (read as a finding)
    """The demo cannot be run as asked; the message says why and what to do."""
