"""Why a run cannot become a skill.

CompilationError
└── NotCompilable   the run says something that no input carries; the message names it
"""

from __future__ import annotations

__all__ = ["CompilationError", "NotCompilable"]


class CompilationError(Exception):
    """Anything that keeps a run from becoming a skill."""


class NotCompilable(CompilationError):  # noqa: N818  (a verdict on a run)
    """A run without tools, without outputs, or with a task literal that stays frozen by accident."""
