"""What every store of drives promises, run on each of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from skills_store.drives import DriveStore, KeptDrive, MemoryDrives, packed, unpacked
from skills_store.sqlite import open_sqlite_store


def kept(name: str, at: float = 1.0, **report: str) -> KeptDrive:
    return KeptDrive(id=name, at=at, report=dict(report))


@pytest.fixture(params=["memory", "sqlite"])
def drives(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[DriveStore]:
    if request.param == "memory":
        yield MemoryDrives()
        return
    store = open_sqlite_store(tmp_path / "store.db")
    yield store.drives("ann")
    store.close()


def test_the_newest_come_first_and_an_equal_one_is_kept_once(drives: DriveStore) -> None:
    for one in (kept("a", said="one"), kept("b"), kept("a", said="two")):
        drives.add(one)
    assert drives.drives(10) == [kept("a", said="two"), kept("b")]
    assert drives.drives(1) == [kept("a", said="two")]


def test_past_the_bound_the_oldest_go(drives: DriveStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("skills_store.drives.DRIVES_KEPT", 2)
    monkeypatch.setattr("skills_store.sqlite_drives.DRIVES_KEPT", 2)
    for name in "abc":
        drives.add(kept(name))
    assert [one.id for one in drives.drives(10)] == ["c", "b"]


def test_those_from_before_a_time_are_forgotten(drives: DriveStore) -> None:
    for name, at in (("a", 1.0), ("b", 2.0), ("c", 3.0)):
        drives.add(kept(name, at))
    assert drives.drop(2.0) == 1
    assert [one.id for one in drives.drives(10)] == ["c", "b"]


def test_a_principals_drives_are_its_own_and_outlive_the_process(tmp_path: Path) -> None:
    for adds in (True, False):
        store = open_sqlite_store(tmp_path / "store.db")
        try:
            if adds:
                store.drives("ann").add(kept("a", said="half a character: \ud800"))
            assert store.drives("bob").drives(10) == []
            assert [one.report["said"] for one in store.drives("ann").drives(10)] == [
                "half a character: \ud800"
            ]
        finally:
            store.close()


def test_prompts_that_repeat_cost_little_and_what_was_not_packed_is_refused() -> None:
    prompt = "".join(f"line {number} of a log. " for number in range(300))
    shots = {f"s{number}": prompt + "more. " * number for number in range(30)}
    assert len(packed(kept("a", **shots))) < len(prompt)
    with pytest.raises(ValueError, match="cannot be unpacked"):
        unpacked(b"{}")
