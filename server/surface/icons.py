"""The icons of what is listed: drawn here, and sent as data so that no client fetches anything.

There are three: of this server, of its own tools, and of skills. They are small since each is in every
list; hosts show them to people and not to models.
"""

from __future__ import annotations

from urllib.parse import quote

import mcp.types as types

__all__ = ["SERVER_ICONS", "SKILL_ICONS", "TOOL_ICONS"]


def _icons(path: str) -> list[types.Icon]:
    """Return the icon that a path draws in a square of 24 units, in a grey that both themes show."""
    drawing = (
        "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 24 24' fill='none' stroke='#777'"
        f" stroke-width='2'><path d='{path}'/></svg>"
    )
    src = f"data:image/svg+xml,{quote(drawing, safe=_PLAIN)}"
    return [types.Icon(src=src, mime_type="image/svg+xml", sizes=["any"])]


_PLAIN = ":/=,"  # anything else, blanks and quotes too, is no part of an address
SERVER_ICONS = _icons("M3 9 12 4l9 5M5 10v8M12 10v8M19 10v8M3 20h18")
TOOL_ICONS = _icons("M4 20 14 10M13 4a5 5 0 1 0 7 7l-4 0-3-3z")
SKILL_ICONS = _icons("M12 3l3 6 6 1-4 5 1 6-6-3-6 3 1-6-4-5 6-1z")
