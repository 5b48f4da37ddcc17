"""What an operator chooses about the MCP surface: how many skills and which upstream tools are listed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["SurfaceOptions", "ToolSchemas"]

ToolSchemas = Literal["portable", "original"]


@dataclass(frozen=True, slots=True)
class SurfaceOptions:
    """How a bank is shown to clients; the same for all of them."""

    publish_tools: ToolSchemas | None = None
    """Whether upstream tools are listed: with schemas every host takes, or with their own; None: not."""
    publish: int | None = None
    """Most skills that are listed as tools, None: as configured."""
    bare: frozenset[str] = frozenset()
    """Servers whose tools are listed under their own names where those are free and portable."""
    admin: bool = False
    """Whether the tools are listed that change what the bank stands on."""
