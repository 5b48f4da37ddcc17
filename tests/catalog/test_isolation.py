"""Private folders for throw-away processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from catalog.config import ServerSpec
from catalog.errors import ServerUnavailable
from catalog.isolation import open_private_folders

pytestmark = pytest.mark.anyio


async def test_a_server_without_a_working_folder_gets_an_empty_one() -> None:
    async with open_private_folders(
        ServerSpec("s", command="x", env={"HOME": "/home/me", "A": "1"})
    ) as private:
        assert private.cwd is not None
        assert list(Path(private.cwd).iterdir()) == []
        assert private.env["A"] == "1"
        assert Path(private.env["HOME"]).parent == Path(private.cwd).parent
    assert not Path(private.cwd).exists()


async def test_paths_into_the_working_folder_name_the_copy(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.txt").write_text("original")
    spec = ServerSpec(
        "s",
        command="x",
        args=("--root", str(tmp_path), f"{tmp_path}/data/a.txt", f"{tmp_path}-other", "data"),
        env={"ROOT": f"{tmp_path}/data"},
        cwd=str(tmp_path),
    )
    async with open_private_folders(spec) as private:
        work = private.cwd
        assert private.args == ("--root", work, f"{work}/data/a.txt", f"{tmp_path}-other", "data")
        assert private.env["ROOT"] == f"{work}/data"
        Path(private.args[2]).write_text("changed")
    assert (tmp_path / "data" / "a.txt").read_text() == "original"


async def test_a_working_folder_that_is_too_large_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("catalog.isolation.MAX_COPIED_FILES", 2)
    for name in "abc":
        (tmp_path / name).touch()
    with pytest.raises(ServerUnavailable, match="over 2 files"):
        async with open_private_folders(ServerSpec("s", command="x", cwd=str(tmp_path))):
            raise AssertionError("it was copied")


async def test_a_working_folder_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(ServerUnavailable, match="cannot be copied"):
        async with open_private_folders(ServerSpec("s", command="x", cwd=str(tmp_path / "none"))):
            raise AssertionError("it was copied")
