"""A file is written whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from catalog.whole_file import write_whole


def test_replaces_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "value"
    path.write_bytes(b"old")
    write_whole(path, b"new", 0o640)
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o640


def test_is_readable_by_its_owner_alone_unless_told(tmp_path: Path) -> None:
    path = tmp_path / "value"
    write_whole(path, b"new")
    assert path.stat().st_mode & 0o777 == 0o600


def test_keeps_the_old_file_and_no_other_when_the_write_breaks_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "value"
    path.write_bytes(b"old")

    def interrupt(_handle: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_whole(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]
