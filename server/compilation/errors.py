"""Why a run cannot become a skill.

CompilationError
└── NotCompilable   there is nothing to call, or the task says something that no input carries
"""

from __future__ import annotations

__all__ = ["CompilationError", "NotCompilable"]


class CompilationError(Exception):
    """Anything that keeps a run from becoming a skill."""


class NotCompilable(CompilationError):  # noqa: N818  (a verdict on a run)
    """A run without tools or outputs, or whose task states a value that no input carries."""
