"""The command line: arguments to use cases, reports to text or JSON, errors to exit codes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from server.cli.loading import loading

if TYPE_CHECKING:
    from server.cli.ports import Wiring

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None, wiring: Wiring | None = None) -> int:
    """Carry out a command line and return the exit code; see `server.cli.app.main`.

    An interrupt while the program is still being loaded ends it like any other.
    """
    try:
        with loading():
            from server.cli import app
    except KeyboardInterrupt:
        return 130
    return app.main(arguments, wiring)
