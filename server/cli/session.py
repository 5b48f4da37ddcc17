"""One command being carried out: its settings, its two streams, and the bank it opens.

Results go to stdout, as a person reads them or as JSON; everything else goes to stderr.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Awaitable, Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from types import FrameType
from typing import TYPE_CHECKING, TextIO, TypeVar

import anyio
import click
from pydantic import BaseModel

from catalog.config import InputSpec, ServerSpec
from catalog.plain_text import plain_text
from server.cli.ports import BankPort, Wiring
from server.inputs import unanswered
from server.settings import Settings

if TYPE_CHECKING:
    from rich.console import Console

    from server.cli.progress import ProgressLine
    from server.execution.consent import Consent, ConsentQuestion

__all__ = ["Session"]

_T = TypeVar("_T")
_R = TypeVar("_R", bound=BaseModel)

_PIPED_WIDTH = 140


@dataclass(frozen=True)
class Session:
    """What a command works with."""

    settings: Settings
    wiring: Wiring
    as_json: bool

    @cached_property
    def out(self) -> Console:
        """Stdout, for results."""
        return _console(sys.stdout)

    @cached_property
    def err(self) -> Console:
        """Stderr, for everything else."""
        return _console(sys.stderr)

    @property
    def interactive(self) -> bool:
        """Whether a person can be asked something."""
        return not self.as_json and self.wiring.is_interactive()

    def show(self, report: _R, render: Callable[[Console, _R], None]) -> None:
        """Print a report on stdout: its JSON, or as `render` draws it."""
        if self.as_json:
            click.echo(report.model_dump_json(indent=2))
        else:
            render(self.out, report)

    def say(self, message: str) -> None:
        """Print a line for a person on stderr."""
        self.err.print(plain_text(message), markup=False, highlight=False, soft_wrap=True)

    def confirm(self, question: str, *, default: bool = True) -> bool:
        """Ask a person yes or no on the terminal."""
        return click.confirm(question, default=default, err=True)

    def ask(self, asked: InputSpec) -> str | None:
        """Ask a person for an input on the terminal; None where nothing is typed."""
        answer = click.prompt(
            plain_text(asked.question),
            default=asked.default or "",
            hide_input=asked.password,
            show_default=bool(asked.default) and not asked.password,
            type=click.Choice(("", *asked.options)) if asked.options else str,
            show_choices=bool(asked.options),
            err=True,
        )
        return str(answer) or None

    def ask_inputs(self, servers: Iterable[ServerSpec]) -> None:
        """Ask a person at the terminal for what these servers wait for, and keep the answers.

        Raises:
            SecretsUnusable: they cannot be kept.
        """
        if not self.interactive:
            return
        secrets = self.settings.open_secrets()
        for asked in unanswered(servers, secrets):
            if (answer := self.ask(asked)) is not None:
                secrets.put(asked.key, answer)

    def run(self, work: Callable[[], Awaitable[_T]]) -> _T:
        """Run something async to its end; an interrupt cancels it and waits for its cleanup."""
        with _termination_as_interrupt():
            return anyio.run(work)

    def with_bank(self, use: Callable[[BankPort], Awaitable[_T]]) -> _T:
        """Open the bank, use it, close it, with progress on stderr meanwhile.

        At a terminal a person is asked first for the inputs that servers wait for.
        """
        if self.interactive:
            self.ask_inputs(self.settings.load_config().servers.values())

        from server.cli.progress import ProgressLine

        async def work() -> _T:
            with ProgressLine(self.err) as line:
                consent = _PausingProgress(self.wiring.consent(self.interactive), line)
                async with self.wiring.open_bank(self.settings, consent=consent, progress=line) as bank:
                    return await use(bank)

        return self.run(work)


def _console(stream: TextIO) -> Console:
    from rich.console import Console  # only once something is drawn: `serve` never does

    width = None if stream.isatty() else _PIPED_WIDTH
    return Console(file=stream, width=width, highlight=False, emoji=False)


@dataclass(frozen=True)
class _PausingProgress:
    """Asks as another does, with the progress line out of the way."""

    asked: Consent
    line: ProgressLine

    async def ask(self, question: ConsentQuestion) -> bool | None:
        with self.line.paused():
            return await self.asked.ask(question)


@contextmanager
def _termination_as_interrupt() -> Generator[None]:
    """Make a termination signal end the work as Ctrl-C does: cancelled, and cleaned up after.

    Shells start background work with Ctrl-C ignored, which would leave the event loop deaf to both.
    """

    def interrupt(number: int, frame: FrameType | None) -> None:
        del number, frame
        signal.raise_signal(signal.SIGINT)

    termination = signal.signal(signal.SIGTERM, interrupt)
    keyboard = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, keyboard)
        signal.signal(signal.SIGTERM, termination)
