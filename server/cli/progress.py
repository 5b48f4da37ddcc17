"""Progress on stderr: one live line on a terminal, one line per stage elsewhere."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from types import TracebackType

from rich.console import Console
from rich.status import Status
from rich.text import Text

from catalog.plain_text import plain_text
from server.progress import Progress

__all__ = ["ProgressLine", "render_progress"]

_LONGEST_MESSAGE = 120


class ProgressLine:
    """A listener that shows progress while its context is open."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live: Status | None = None
        self._told: set[str] = set()

    def __enter__(self) -> ProgressLine:
        if self._console.is_terminal:
            self._live = self._console.status("starting")
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def __call__(self, progress: Progress, /) -> None:
        """Show one moment."""
        if self._live is not None:
            self._live.update(Text(render_progress(progress)))
        elif progress.stage not in self._told:
            self._console.print(render_progress(progress), markup=False, soft_wrap=True)
        self._told.add(progress.stage)

    @contextmanager
    def paused(self) -> Generator[None]:
        """Take the live line away, for a question to a person."""
        if self._live is not None:
            self._live.stop()
        try:
            yield
        finally:
            if self._live is not None:
                self._live.start()


def render_progress(progress: Progress) -> str:
    """Return one line: the stage, the numbers it has, and what is happening."""
    numbers = [
        f"{progress.candidates} candidates" if progress.candidates else "",
        f"{progress.calls} calls" if progress.calls else "",
        f"best {progress.best:.2f}" if progress.best is not None else "",
        f"{progress.faults_left} faults left" if progress.faults_left else "",
        f"generation {progress.generation}" if progress.generation is not None else "",
        f"intensity {progress.intensity:.2f}" if progress.intensity is not None else "",
    ]
    counted = " · ".join(number for number in numbers if number)
    message = plain_text(progress.message, _LONGEST_MESSAGE).replace("\n", " ")
    return "  ".join(part for part in (progress.stage, counted, message) if part)
