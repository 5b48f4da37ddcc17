"""Telling the demo while it happens: drawn for a person, or as one JSON object at its end."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Protocol, TextIO

from rich.console import Console

from server.cli.progress import ProgressLine
from server.demo import rendering
from server.demo.report import DemoReport, Skipped, StoryReport
from server.demo.stories import Story
from server.progress import ProgressListener
from server.reports import ServerReport
from skills_store.workflow.faults import Fault

__all__ = ["JsonNarrator", "Narrator", "TerminalNarrator", "open_narrator"]

_PIPED_WIDTH = 120


class Narrator(Protocol):
    """Is told every part of a demo once, in this order; never raises."""

    def progress(self) -> AbstractContextManager[ProgressListener]:
        """Return a listener for the work that is done inside of the context."""
        ...

    def tell_servers(self, servers: Sequence[ServerReport], skipped: Sequence[Skipped]) -> None:
        """Tell which servers run, and which stories are left out."""
        ...

    def tell_broken(self, story: Story, faults: Sequence[Fault]) -> None:
        """Tell what a story is about, and what checking found."""
        ...

    def tell_mended(self, report: StoryReport) -> None:
        """Tell what the repair did and what became of the skill."""
        ...

    def tell_calls(
        self, command: Sequence[str], tools: Sequence[str], reports: Sequence[StoryReport]
    ) -> None:
        """Tell what a client of our own server saw and was answered."""
        ...

    def tell_end(self, report: DemoReport) -> None:
        """Tell what it came to."""
        ...


class TerminalNarrator:
    """Draws every part on one console, progress on another."""

    def __init__(self, out: Console, err: Console) -> None:
        self._out = out
        self._err = err

    def progress(self) -> AbstractContextManager[ProgressListener]:
        return ProgressLine(self._err)

    def tell_servers(self, servers: Sequence[ServerReport], skipped: Sequence[Skipped]) -> None:
        rendering.render_servers(self._out, servers, skipped)

    def tell_broken(self, story: Story, faults: Sequence[Fault]) -> None:
        rendering.render_broken(self._out, story, faults)

    def tell_mended(self, report: StoryReport) -> None:
        rendering.render_mended(self._out, report)

    def tell_calls(
        self, command: Sequence[str], tools: Sequence[str], reports: Sequence[StoryReport]
    ) -> None:
        rendering.render_calls(self._out, command, tools, reports)

    def tell_end(self, report: DemoReport) -> None:
        rendering.render_end(self._out, report)


class JsonNarrator:
    """Writes the report at the end and nothing before it; progress on a console."""

    def __init__(self, out: TextIO, err: Console) -> None:
        self._out = out
        self._err = err

    def progress(self) -> AbstractContextManager[ProgressListener]:
        return ProgressLine(self._err)

    def tell_servers(self, servers: Sequence[ServerReport], skipped: Sequence[Skipped]) -> None:
        """Nothing: it is in the report."""

    def tell_broken(self, story: Story, faults: Sequence[Fault]) -> None:
        """Nothing: it is in the report."""

    def tell_mended(self, report: StoryReport) -> None:
        """Nothing: it is in the report."""

    def tell_calls(
        self, command: Sequence[str], tools: Sequence[str], reports: Sequence[StoryReport]
    ) -> None:
        """Nothing: it is in the report."""

    def tell_end(self, report: DemoReport) -> None:
        self._out.write(report.model_dump_json(indent=2) + "\n")


def open_narrator(out: TextIO, err: TextIO, *, as_json: bool) -> Narrator:
    """Return a narrator on two streams."""
    progress = _console(err)
    return JsonNarrator(out, progress) if as_json else TerminalNarrator(_console(out), progress)


def _console(stream: TextIO) -> Console:
    width = None if stream.isatty() else _PIPED_WIDTH
    return Console(file=stream, width=width, highlight=False, emoji=False)
