"""What the search benchmark found, as data and as a table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import BaseModel, ConfigDict

from server.bench.measures import Spread

__all__ = ["BuildCost", "Recall", "SearchBenchReport", "SourceRecall", "WayRecall", "render_search_report"]

_NAMES = {"embeddings": "meaning and words", "words": "words alone", "fastmcp": "FastMCP BM25"}


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Recall(_Record):
    """Shares of the wanted tools among the first hits, in [0, 1]."""

    at_1: float = 0.0
    at_5: float = 0.0
    at_10: float = 0.0
    at_5_each_counted: float = 0.0
    """Among the first five hits when tools that do the same take a place each."""


class SourceRecall(_Record):
    """One source of requests."""

    requests: int
    wanted: float
    """Tools a request wants, on average."""
    recall: Recall


class WayRecall(_Record):
    """One way to search."""

    one_thing: Recall
    """Over all requests of others for one thing."""
    whole_tasks: Recall
    """Over all tasks of others that need several tools."""
    sources: dict[str, SourceRecall]


class BuildCost(_Record):
    """Seconds and megabytes of making and keeping the index; zero where it was not made."""

    words_seconds: float
    update_words_seconds: float
    """Fifty tools changed, words alone."""
    model_seconds: float = 0.0
    vectors_seconds: float = 0.0
    texts: int = 0
    """Texts embedded."""
    update_seconds: float = 0.0
    """Fifty tools changed: words, embeddings and the file."""
    update_texts: int = 0
    reopen_seconds: float = 0.0
    """Vectors of an unchanged catalog, from disk."""
    words_mb: float = 0.0
    model_mb: float = 0.0
    matrix_mb: float = 0.0


class SearchBenchReport(_Record):
    """Recall by way and source on the held-out half, and what a search takes."""

    bench: Literal["search"] = "search"
    quick: bool
    tools: int
    distinct_tools: int
    """Sets of tools that do the same."""
    requests: int
    """Held-out requests; nothing was chosen by looking at them."""
    best: str
    ways: dict[str, WayRecall]
    tuning_half: Recall
    """The best way on the half that weights were chosen on, requests for one thing."""
    beside_fastmcp: dict[str, WayRecall]
    """Our ways on the requests that FastMCP's search was asked."""
    milliseconds: dict[str, dict[str, Spread]]
    build: BuildCost
    note: str = ""
    """Why there are no embeddings, empty when there are."""
    left_out: tuple[str, ...] = ()
    fastmcp: str | None
    """Its version, None when it is not installed."""


def render_search_report(report: SearchBenchReport) -> str:
    """Return the report as Markdown that reads well on a terminal too."""
    return "\n".join([*_recall_table(report), "", *_time_table(report), "", *_remarks(report)]) + "\n"


def _recall_table(report: SearchBenchReport) -> Iterator[str]:
    ways = [name for name in _NAMES if name in report.ways]
    heads = " | ".join(_NAMES[way] for way in ways)
    yield f"| share of wanted tools in the first 1 / 5 / 10 | requests | {heads} |"
    yield f"|---|---:|{'---:|' * len(ways)}"
    whole = [report.ways[way] for way in ways]
    yield _row("**requests for one thing**", None, [way.one_thing for way in whole])
    yield _row("**whole tasks**, per sub-goal", None, [way.whole_tasks for way in whole])
    for source, told in report.ways[report.best].sources.items():
        found = [way.sources[source].recall if source in way.sources else None for way in whole]
        yield _row(source, told.requests, found)


def _row(name: str, requests: int | None, found: list[Recall | None] | list[Recall]) -> str:
    shown = [f"{_shares(recall)}" if recall else "–" for recall in found]
    return f"| {name} | {'' if requests is None else requests} | {' | '.join(shown)} |"


def _shares(recall: Recall) -> str:
    return f"{recall.at_1:.0%} / {recall.at_5:.0%} / {recall.at_10:.0%}"


def _time_table(report: SearchBenchReport) -> Iterator[str]:
    yield "| one search, ms | p50 | p95 | max |"
    yield "|---|---:|---:|---:|"
    for way, kinds in report.milliseconds.items():
        for kind, spread in kinds.items():
            if spread.count:
                name = f"{_NAMES[way]}, {kind}"
                yield f"| {name} | {spread.median:.1f} | {spread.p95:.1f} | {spread.max:.0f} |"


def _remarks(report: SearchBenchReport) -> Iterator[str]:
    size = "; quick: fewer tools and requests, an easier search" if report.quick else ""
    yield (
        f"- {report.requests} held-out requests among {report.tools} tools, {report.distinct_tools} different"
        f" ones: tools that do the same count as one{size}"
    )
    best, tuned = report.ways[report.best].one_thing, report.tuning_half
    yield (
        f"- {_NAMES[report.best]}, one thing, first five: {best.at_5:.1%}; with every tool counted by itself"
        f" {best.at_5_each_counted:.1%}; on the half that weights were chosen on {tuned.at_5:.1%}"
    )
    if "fastmcp" in report.ways:
        beside = {**report.beside_fastmcp, "fastmcp": report.ways["fastmcp"]}
        told = (f"{_NAMES[n]} {w.one_thing.at_5:.0%} / {w.whole_tasks.at_5:.0%}" for n, w in beside.items())
        asked = sum(source.requests for source in report.ways["fastmcp"].sources.values())
        yield (
            f"- FastMCP {report.fastmcp} was asked {asked} of them; on these, first five, one thing / whole"
            f" tasks: {', '.join(told)}"
        )
    yield from _costs(report.build)
    if report.note:
        yield f"- no embeddings: {report.note}"
    for left in report.left_out:
        yield f"- left out: {left}"


def _costs(build: BuildCost) -> Iterator[str]:
    yield (
        f"- word index {build.words_seconds:.2f} s, {build.words_mb:.0f} MB; fifty tools changed:"
        f" {build.update_words_seconds * 1000:.0f} ms"
    )
    if build.texts:
        yield (
            f"- model {build.model_seconds:.1f} s, {build.model_mb:.0f} MB; {build.texts} texts embedded once"
            f" a catalog in {build.vectors_seconds:.0f} s, {build.matrix_mb:.0f} MB; fifty tools changed:"
            f" {build.update_texts} texts in {build.update_seconds:.1f} s; from disk:"
            f" {build.reopen_seconds:.2f} s"
        )
