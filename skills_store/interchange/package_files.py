"""Reads the files of a package out of a folder or an archive that a stranger made.

Nothing is ever unpacked to disk, executed or followed: no links, no devices, no paths that lead
elsewhere, no names that some system reserves, and no more bytes than a package may have, counted
while they are read and not as the archive claims.
"""

from __future__ import annotations

import os
import re
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

from skills_store.errors import NotImportable

__all__ = ["MAX_FILES", "MAX_PACKAGE_BYTES", "check_path", "read_package_files"]

MAX_FILES = 512
MAX_PACKAGE_BYTES = 16 << 20
_LONGEST_PATH = 200
_DEEPEST = 8
_RESERVED = re.compile(r"^(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?$", re.IGNORECASE)
_PART = re.compile(r"^[A-Za-z0-9_][A-Za-z0-9._ -]*$")


def read_package_files(path: Path) -> dict[str, bytes]:
    """Return the files of a package by path below its `SKILL.md`.

    Args:
        path: a folder, a ZIP file or a tar file, packed or not.

    Raises:
        NotImportable: it is none of them, or anything in it may not be there.
        OSError: it cannot be read.
    """
    if path.is_symlink():
        raise NotImportable(f"{path} is a link")
    if path.is_dir():
        return _at_top(_collected(_in_folder(path)))
    if zipfile.is_zipfile(path):
        return _at_top(_from_zip(path))
    if tarfile.is_tarfile(path):
        return _at_top(_from_tar(path))
    raise NotImportable(f"{path} is no folder, no ZIP file and no tar file")


def check_path(name: str) -> str:
    """Return a path of a package as it is kept, with `/` between its parts.

    Raises:
        NotImportable: it leads elsewhere, or some system reserves it.
    """
    parts = name.split("/")
    if name.startswith("/") or "\\" in name or ":" in name or "\x00" in name:
        raise NotImportable(f"{name!r} is no path below the package")
    if len(name) > _LONGEST_PATH or len(parts) > _DEEPEST:
        raise NotImportable(f"{name[:80]!r} is longer or deeper than a path may be")
    for part in parts:
        if part in ("", ".", "..") or not _PART.match(part) or part.endswith((".", " ")):
            raise NotImportable(f"{name!r} is no path below the package")
        if _RESERVED.match(part):
            raise NotImportable(f"{name!r} is a name that some systems reserve")
    return name


def _collected(files: Iterable[tuple[str, IO[bytes]]]) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    seen: set[str] = set()
    left = MAX_PACKAGE_BYTES
    for name, file in files:
        with file:
            kept = check_path(name)
            if kept.lower() in seen:
                raise NotImportable(f"{name!r} is there twice")
            seen.add(kept.lower())
            if len(seen) > MAX_FILES:
                raise NotImportable(f"it has more than {MAX_FILES} files")
            content = file.read(left + 1)
        left -= len(content)
        if left < 0:
            raise NotImportable(f"it has more than {MAX_PACKAGE_BYTES} bytes")
        found[kept] = content
    return found


def _in_folder(folder: Path) -> Iterator[tuple[str, IO[bytes]]]:
    waiting = [folder]
    entries = 0
    while waiting:
        for entry in sorted(os.scandir(waiting.pop()), key=lambda entry: entry.name):
            name = Path(entry.path).relative_to(folder).as_posix()
            entries += 1
            if entries > 2 * MAX_FILES:
                raise NotImportable(f"it has more than {MAX_FILES} files")
            if entry.is_symlink():
                raise NotImportable(f"{name!r} is a link")
            if entry.is_dir(follow_symlinks=False):
                check_path(name)
                waiting.append(Path(entry.path))
            elif entry.is_file(follow_symlinks=False):
                yield name, _opened(entry.path)
            else:
                raise NotImportable(f"{name!r} is no plain file")


def _opened(path: str) -> IO[bytes]:
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    return os.fdopen(descriptor, "rb")


def _from_zip(path: Path) -> dict[str, bytes]:
    try:
        with zipfile.ZipFile(path) as archive:
            return _collected(_in_zip(archive))
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
        raise NotImportable(f"the archive cannot be read: {error}") from error


def _in_zip(archive: zipfile.ZipFile) -> Iterator[tuple[str, IO[bytes]]]:
    entries = archive.infolist()
    if len(entries) > 2 * MAX_FILES:
        raise NotImportable(f"it has more than {MAX_FILES} files")
    for entry in entries:
        kind = stat.S_IFMT(entry.external_attr >> 16)
        if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
            raise NotImportable(f"{entry.filename!r} is a link or no plain file")
        if entry.flag_bits & 1:
            raise NotImportable(f"{entry.filename!r} is encrypted")
        if not entry.is_dir():
            yield entry.filename, archive.open(entry)


def _from_tar(path: Path) -> dict[str, bytes]:
    try:
        with tarfile.open(path) as archive:
            return _collected(_in_tar(archive))
    except (tarfile.TarError, zlib.error, EOFError, ValueError) as error:
        raise NotImportable(f"the archive cannot be read: {error}") from error


def _in_tar(archive: tarfile.TarFile) -> Iterator[tuple[str, IO[bytes]]]:
    for number, entry in enumerate(archive):
        if number > 2 * MAX_FILES:
            raise NotImportable(f"it has more than {MAX_FILES} files")
        if entry.isdir():
            continue
        file = archive.extractfile(entry) if entry.isreg() else None
        if file is None:
            raise NotImportable(f"{entry.name!r} is a link or no plain file")
        yield entry.name.removeprefix("./"), file


def _at_top(files: dict[str, bytes]) -> dict[str, bytes]:
    """Return files by path below `SKILL.md`, which may stand in one folder that holds everything."""
    if "SKILL.md" in files:
        return files
    tops = {name.split("/")[0] for name in files}
    top = f"{tops.pop()}/" if len(tops) == 1 else ""
    if not top or f"{top}SKILL.md" not in files:
        raise NotImportable("there is no SKILL.md at its top")
    return {name.removeprefix(top): content for name, content in files.items()}
