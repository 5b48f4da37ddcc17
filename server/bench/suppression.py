"""The operating curve of suppression on simulated streams: how soon a harmful skill is restricted.

Simulated: outcomes are drawn, no tool is called. Every stream is one family of tasks and one skill
that its bank admitted after two right runs; the code that decides is the product's
(`skills_store.contrast`), with the product's defaults. The paper's rule runs beside it on the same
streams. An audit is thought to pass always, which is the worst case: a wrong skill with right tests.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

from pydantic import BaseModel, ConfigDict

from server.progress import Progress, ProgressListener, ignore_progress
from skills_store.admission import MINIMUM_TRACES
from skills_store.contrast import ERROR_RATE, SHARE, SUSPICIOUS_SHARE, Trial, contrast_of, share_for
from skills_store.utility import Interval, UseCounts, success_interval

__all__ = ["CurvePoint", "SuppressionOptions", "SuppressionReport", "measure_suppression", "simulate_stream"]

_SEED = 20_260_607
_HARMFUL_WITHIN = 14
_LENGTH = 100
_MOST_BEFORE = 30


class _Report(BaseModel):
    model_config = ConfigDict(frozen=True)


class CurvePoint(_Report):
    """What became of the simulated streams of one kind of skill."""

    kind: Literal["harmful", "worse", "neutral", "better"]
    guided_rate: float
    control_rate: float
    within: int
    """Guided uses after which a stream ends."""
    streams: int
    restricted: int
    """Streams in which the product's test restricted the skill."""
    share: float
    low: float
    """Ends of the 95 % interval of the share."""
    high: float
    median_uses: float | None
    """Guided uses until it was restricted, the middle one; None when it never was."""
    paper_suppressed: int
    """Streams in which the paper's rule (δ < −0.1, 5 guided, 3 unguided) fired at some time."""
    paper_share: float


class SuppressionReport(_Report):
    """Answer of `bench stream --part suppression`."""

    bench: Literal["suppression"] = "suppression"
    simulated: bool = True
    seed: int
    error_rate: float
    withheld: float
    withheld_under_suspicion: float
    points: tuple[CurvePoint, ...]
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class SuppressionOptions:
    """How much is simulated. `share` and `error_rate` are the product's unless others are to be compared."""

    streams: int = 1000
    seed: int = _SEED
    share: float = SHARE
    error_rate: float = ERROR_RATE
    listener: ProgressListener = ignore_progress


_Kind = tuple[Literal["harmful", "worse", "neutral", "better"], float, float, int]
_KINDS: Sequence[_Kind] = (
    ("harmful", 0.15, 0.85, _HARMFUL_WITHIN),
    ("harmful", 0.0, 1.0, _HARMFUL_WITHIN),
    ("worse", 0.5, 0.85, _LENGTH),
    ("worse", 0.7, 0.85, _LENGTH),
    ("neutral", 0.95, 0.95, _LENGTH),
    ("neutral", 0.85, 0.85, _LENGTH),
    ("neutral", 0.5, 0.5, _LENGTH),
    ("neutral", 0.2, 0.2, _LENGTH),
    ("better", 0.95, 0.7, _LENGTH),
)


@dataclass(frozen=True, slots=True)
class Simulated:
    """What became of one stream: guided uses when each rule first fired, None when it never did."""

    restricted_after: int | None
    paper_after: int | None


def simulate_stream(
    dice: random.Random, rates: tuple[float, float], within: int, options: SuppressionOptions
) -> Simulated:
    """Return what became of one stream that ends after some guided uses.

    Args:
        dice: where outcomes and coins come from.
        rates: of success with the skill and without it.
        within: guided uses after which the stream ends.
        options: share and error rate.
    """
    with_it, without = rates
    before = _before(dice, without)
    uses, restricted, paper = 0, None, None
    contrast = contrast_of((), before, options.error_rate)
    while uses < within and (restricted is None or paper is None):
        share = share_for(contrast, options.share)
        withheld = dice.random() < share
        trial = Trial(withheld, dice.random() < (without if withheld else with_it), share)
        uses += not withheld
        contrast = contrast.after(trial)
        if restricted is None and contrast.is_worse:
            restricted = uses
        if paper is None and contrast.paper_would_suppress:
            paper = uses
    return Simulated(restricted, paper)


def _before(dice: random.Random, without: float) -> list[bool]:
    """Return the family's episodes up to the second right run, of which the skill was made."""
    outcomes: list[bool] = []
    while sum(outcomes) < MINIMUM_TRACES and len(outcomes) < _MOST_BEFORE:
        outcomes.append(dice.random() < without)
    return outcomes


def measure_suppression(
    options: SuppressionOptions | None = None, clock: Callable[[], float] | None = None
) -> SuppressionReport:
    """Return the operating curve; the same for the same seed."""
    options = options or SuppressionOptions()
    started = clock() if clock else 0.0
    points: list[CurvePoint] = []
    for number, kind in enumerate(_KINDS):
        options.listener(Progress("bench", f"{kind[0]} skills: {options.streams} simulated streams"))
        points.append(_point(kind, random.Random(options.seed + number), options))
    return SuppressionReport(
        seed=options.seed,
        error_rate=options.error_rate,
        withheld=options.share,
        withheld_under_suspicion=SUSPICIOUS_SHARE,
        points=tuple(points),
        seconds=clock() - started if clock else 0.0,
    )


def _point(kind: _Kind, dice: random.Random, options: SuppressionOptions) -> CurvePoint:
    name, with_it, without, within = kind
    streams = [simulate_stream(dice, (with_it, without), within, options) for _ in range(options.streams)]
    uses = [stream.restricted_after for stream in streams if stream.restricted_after is not None]
    paper = sum(stream.paper_after is not None for stream in streams)
    interval: Interval = success_interval(UseCounts(len(streams), len(uses)))
    return CurvePoint(
        kind=name,
        guided_rate=with_it,
        control_rate=without,
        within=within,
        streams=len(streams),
        restricted=len(uses),
        share=len(uses) / len(streams),
        low=interval.low,
        high=interval.high,
        median_uses=median(uses) if uses else None,
        paper_suppressed=paper,
        paper_share=paper / len(streams),
    )
