"""Why a benchmark could not be run; what it needs and cannot have is `server.provisioning.errors`."""

from __future__ import annotations

__all__ = ["BenchError"]


class BenchError(Exception):
    """Why a benchmark could not be run."""
