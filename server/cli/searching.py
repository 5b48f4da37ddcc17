"""The options of a command that searches: strategy, seed, and where the search is written down."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar, cast, get_args

import click

from server.evolution.options import SearchOptions, StrategyName

__all__ = ["Searching", "search_options"]

_F = TypeVar("_F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Searching:
    """How a search goes about it, and its record."""

    options: SearchOptions = field(default_factory=SearchOptions)
    record: Path | None = None
    resume: Path | None = None


def search_options(command: _F) -> _F:
    """Give a command the options of a search, passed on as `searching`."""
    standard = SearchOptions()

    @click.option(
        "--strategy",
        type=click.Choice(get_args(StrategyName)),
        default=standard.strategy,
        show_default=True,
        help="ladder: edits chosen by what is wrong. population: then evolve the best. greedy: then evolve "
        "the one best. retry: run it again as it is. auto: ladder, and population where a model can edit.",
    )
    @click.option(
        "--seed",
        type=click.IntRange(min=0),
        default=standard.seed,
        show_default=True,
        help="Draws what a population draws: the same search again. A search taken up keeps its own.",
    )
    @click.option(
        "--attribution/--no-attribution",
        default=standard.switches.attribution,
        show_default=True,
        help="Whether what earlier steps were worth orders the edits; it saved little where measured.",
    )
    @click.option(
        "--record",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        help="Write every candidate to this new file as it is evaluated, one JSON line each.",
    )
    @click.option(
        "--resume",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        help="Go on with the search of this record: nothing is evaluated twice, no write happens again.",
    )
    @functools.wraps(command)
    def with_search(
        *,
        strategy: StrategyName,
        seed: int,
        attribution: bool,
        record: Path | None,
        resume: Path | None,
        **given: object,
    ) -> object:
        if record is not None and resume is not None and record != resume:
            raise click.UsageError("--resume goes on in its own file: give it alone, or --record alone")
        switches = replace(standard.switches, attribution=attribution)
        options = SearchOptions(strategy=strategy, seed=seed, switches=switches)
        return command(searching=Searching(options, record, resume), **given)

    return cast("_F", with_search)
