"""The model of a benchmark: as the command names it, one that is kept on tape, or a recording alone."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from catalog.config import ModelSpec, parse_model
from server.backends.backend import Backend, Wire
from server.bench.errors import BenchError
from server.bench.planning_tape import About, Tape, new_tape, read_tape
from server.bench.request import BenchRequest

__all__ = ["answers_of", "spec_of"]

_RECORDED = "recorded:"


def spec_of(model: str) -> ModelSpec:
    """Return what a name such as `local:NAME` stands for.

    Raises:
        BenchError: nothing.
    """
    try:
        return parse_model(model)
    except ValueError as error:
        raise BenchError(str(error)) from error


@asynccontextmanager
async def answers_of(
    request: BenchRequest, recorded: Callable[[], Tape]
) -> AsyncGenerator[tuple[Tape, Wire | None]]:
    """Yield the tape of a model's answers, and the model where one is asked for what is not on it.

    Args:
        request: names the model and the tape.
        recorded: the answers that come with the benchmark.

    Raises:
        BackendError: the model cannot be had.
        BenchError: no such model, or the tape is another model's.
    """
    from server.wiring import open_bank

    if request.model is None or request.model.startswith(_RECORDED):
        given = request.model
        yield (recorded() if given is None else read_tape(Path(given.removeprefix(_RECORDED)))), None
        return
    try:
        spec = spec_of(request.model)
    except BenchError as error:
        raise BenchError(f"{error}, or recorded:FILE") from error
    async with open_bank(request.configured) as bank:
        live = await bank.context.models.open(spec)
        yield _tape(request.tape, live), live


def _tape(path: Path | None, live: Backend) -> Tape:
    """Return the tape a model's answers are kept on, as it stands when it was begun before."""
    about = About(
        model=live.name,
        machine=f"{os.cpu_count()} cores, {platform.machine()}",
        recorded=time.strftime("%Y-%m-%d"),
        context_tokens=live.context_tokens,
        samples=live.samples,
    )
    if path is None:
        return Tape(about)
    if not path.exists():
        return new_tape(path, about)
    kept = read_tape(path, extend=True)
    if kept.about.model != live.name:
        raise BenchError(f"{path} holds answers of {kept.about.model}, not of {live.name}: name another file")
    return kept
