"""What benchmarks reduce their measurements to."""

from __future__ import annotations

import os
import statistics
from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict

__all__ = ["Spread", "percentile", "resident_mb", "spread_of"]


class Spread(BaseModel):
    """Mean, median and extremes of some measurements; all zero when there were none."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    count: int
    mean: float
    median: float
    p95: float
    max: float


def spread_of(values: Sequence[float]) -> Spread:
    """Return the spread of some measurements."""
    if not values:
        return Spread(count=0, mean=0.0, median=0.0, p95=0.0, max=0.0)
    return Spread(
        count=len(values),
        mean=statistics.fmean(values),
        median=statistics.median(values),
        p95=percentile(values, 0.95),
        max=max(values),
    )


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest measurement that at least this share of them does not exceed.

    Raises:
        ValueError: there are no measurements, or the share is not in (0, 1].
    """
    if not values or not 0 < share <= 1:
        raise ValueError("a percentile needs measurements and a share in (0, 1]")
    ordered = sorted(values)
    position = -int(-len(ordered) * share // 1)
    return ordered[position - 1]


def resident_mb() -> float:
    """Return the megabytes of memory this process holds now; 0 where the system does not say."""
    told = Path("/proc/self/statm")
    return int(told.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6 if told.exists() else 0.0
