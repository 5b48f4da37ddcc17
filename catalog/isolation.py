"""Private folders for one process of a resettable server.

HOME, the temporary folder and the working folder are private. A configured working folder is
copied, within bounds, and where arguments or variables name it they name the copy, so that a
server cannot reach the original by the path it was given.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from anyio import to_thread

from catalog.config import ServerSpec
from catalog.errors import ServerUnavailable

__all__ = ["MAX_COPIED_BYTES", "MAX_COPIED_FILES", "open_private_folders"]

MAX_COPIED_BYTES: Final = 256 * 1024 * 1024
MAX_COPIED_FILES: Final = 10_000


@asynccontextmanager
async def open_private_folders(spec: ServerSpec) -> AsyncGenerator[ServerSpec]:
    """Yield the server as it runs in folders of its own, which are removed afterwards.

    Args:
        spec: the server, placeholders filled.

    Raises:
        ServerUnavailable: the working folder is too large to copy.
    """
    with TemporaryDirectory(prefix="skillbank-", ignore_cleanup_errors=True) as folder:
        root = Path(folder)
        for name in ("home", "tmp"):
            (root / name).mkdir()
        await to_thread.run_sync(_fill_working_folder, spec, root / "work")
        yield _moved(spec, root)


def _fill_working_folder(spec: ServerSpec, target: Path) -> None:
    if spec.cwd is None:
        target.mkdir()
        return
    if (excess := _excess(Path(spec.cwd))) is not None:
        raise ServerUnavailable(spec.name, f"its working folder cannot be copied: {excess}")
    try:
        shutil.copytree(spec.cwd, target, symlinks=True)
    except OSError as error:
        raise ServerUnavailable(spec.name, f"its working folder cannot be copied: {error}") from error


def _excess(folder: Path) -> str | None:
    files = size = 0
    for path, _, names in os.walk(folder):
        for name in names:
            files += 1
            size += os.lstat(os.path.join(path, name)).st_size
            if files > MAX_COPIED_FILES or size > MAX_COPIED_BYTES:
                return f"it has over {MAX_COPIED_FILES} files or {MAX_COPIED_BYTES // 2**20} MiB"
    return None


def _moved(spec: ServerSpec, root: Path) -> ServerSpec:
    work = str(root / "work")

    def moved(text: str) -> str:
        if spec.cwd is None or not os.path.isabs(spec.cwd):
            return text
        original = spec.cwd.rstrip("/")
        if text == original or text.startswith(original + "/"):
            return work + text[len(original) :]
        return text

    private = {"HOME": str(root / "home"), "TMPDIR": str(root / "tmp")}
    return replace(
        spec,
        args=tuple(moved(argument) for argument in spec.args),
        env={**{name: moved(value) for name, value in spec.env.items()}, **private},
        cwd=work,
    )
