"""Cursors of lists that are paged by position."""

from __future__ import annotations

import base64
import binascii

import mcp.types as types
from mcp import MCPError

__all__ = ["cursor_at", "position_of"]


def cursor_at(position: int) -> str:
    """Return the cursor of the page that begins at a position."""
    return base64.urlsafe_b64encode(str(position).encode()).decode()


def position_of(cursor: str | None) -> int:
    """Return the position a cursor stands for, 0 for None.

    Raises:
        MCPError: it is not one of ours.
    """
    if cursor is None:
        return 0
    try:
        position = int(base64.b64decode(cursor.encode(), altchars=b"-_", validate=True))
    except (binascii.Error, ValueError):
        position = -1
    if position < 0:
        raise MCPError(types.INVALID_PARAMS, "Invalid cursor: list from the start again")
    return position
