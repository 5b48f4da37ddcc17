"""Progress of fetching and building on stderr: a bar on a terminal, some lines elsewhere."""

from __future__ import annotations

from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from catalog.plain_text import plain_text
from server.models.step import Step

__all__ = ["StepLine", "render_step"]

_TOLD_PARTS = 4
"""A piece of work is told so many times where there is no terminal."""
_MEGABYTE = 10**6


class StepLine:
    """Shows steps while its context is open."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._told: tuple[str, int] | None = None
        self._task: TaskID | None = None
        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.fields[amount]}", markup=False),
            TimeRemainingColumn(),
            console=console,
            transient=True,
        )

    def __enter__(self) -> StepLine:
        if self._console.is_terminal:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._console.is_terminal:
            self._bar.stop()

    def __call__(self, step: Step, /) -> None:
        """Show one moment."""
        if self._console.is_terminal:
            self._draw(step)
        part = _TOLD_PARTS * step.done // step.total if step.total else 0
        if self._told is None or self._told[0] != step.message or part > self._told[1]:
            self._told = (step.message, part)
            if not self._console.is_terminal:
                self._console.print(render_step(step), markup=False, soft_wrap=True)

    def _draw(self, step: Step) -> None:
        if self._task is None or self._told is None or self._told[0] != step.message:
            if self._task is not None:
                self._bar.remove_task(self._task)
            self._console.print(plain_text(step.message), markup=False, soft_wrap=True, style="dim")
            self._task = self._bar.add_task("", total=None, amount="")
        self._bar.update(
            self._task, completed=step.done, total=step.total or None, amount=_amount(step), description=""
        )


def render_step(step: Step) -> str:
    """Return one line: what is being done, and how much of it is."""
    amount = _amount(step)
    return plain_text(step.message) + (f"  {amount}" if amount else "")


def _amount(step: Step) -> str:
    if not step.total:
        return ""
    if step.unit == "B":
        return f"{step.done / _MEGABYTE:.0f}/{step.total / _MEGABYTE:.0f} MB"
    return f"{step.done}/{step.total} {step.unit}"
