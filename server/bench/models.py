"""A model as the command line names it, for benchmarks that ask a real one."""

from __future__ import annotations

from catalog.config import ModelSpec, parse_model
from server.bench.errors import BenchError

__all__ = ["spec_of"]


def spec_of(model: str) -> ModelSpec:
    """Return what a name such as `local:NAME` stands for.

    Raises:
        BenchError: nothing.
    """
    try:
        return parse_model(model)
    except ValueError as error:
        raise BenchError(str(error)) from error
