"""The SQLite file under other processes, other versions, damage and death."""

from __future__ import annotations

import os
import signal
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from skills_store import sqlite_file
from skills_store.errors import StoreUnusable
from skills_store.migrations import SCHEMA_VERSION
from skills_store.sqlite import SqliteStore, open_sqlite_store

ROOT = Path(__file__).parents[2]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "store.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    opened = open_sqlite_store(path)
    yield opened
    opened.close()


def start(program: str, *arguments: object) -> subprocess.Popen[str]:
    """Start a Python program in a process of its own, that talks over its pipes."""
    return subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def folder(path: Path) -> dict[str, bytes]:
    return {entry.name: entry.read_bytes() for entry in path.parent.iterdir()}


def make_file(path: Path, *statements: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


class TestOpening:
    @pytest.mark.usefixtures("store")
    def test_the_folder_is_made_and_the_file_is_its_owners_only(self, path):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600

    def test_what_was_written_is_there_after_reopening(self, path, a_skill):
        first = open_sqlite_store(path)
        first.add_version(a_skill(), expected_head=None)
        first.close()
        again = open_sqlite_store(path)
        assert again.heads() == [a_skill()]
        again.close()

    @pytest.mark.usefixtures("store")
    def test_the_file_is_in_the_mode_that_readers_and_one_writer_share(self, path):
        connection = sqlite3.connect(path)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert connection.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,)
        connection.close()

    def test_a_newer_file_is_refused_and_untouched(self, store, path, a_skill):
        store.add_version(a_skill(), expected_head=None)
        store.close()
        make_file(path, "PRAGMA user_version = 99")
        before = folder(path)
        with pytest.raises(StoreUnusable) as caught:
            open_sqlite_store(path)
        assert str(caught.value) == (
            f"{path} was written by a newer skillbank (schema 99, this one knows {SCHEMA_VERSION}); upgrade"
        )
        assert folder(path) == before

    @pytest.mark.usefixtures("store")
    def test_a_newer_version_that_is_still_in_the_log_is_seen(self, path):
        other = sqlite3.connect(path)
        other.execute("PRAGMA user_version = 99")
        before = path.read_bytes()
        with pytest.raises(StoreUnusable, match="newer skillbank"):
            open_sqlite_store(path)
        assert path.read_bytes() == before
        other.close()

    def test_a_file_of_another_program_is_refused_and_untouched(self, path):
        make_file(path, "CREATE TABLE songs (title TEXT)")
        before = folder(path)
        with pytest.raises(StoreUnusable, match=r"store\.db is a SQLite file of another program"):
            open_sqlite_store(path)
        assert folder(path) == before

    @pytest.mark.parametrize(
        "damage",
        [
            pytest.param(lambda raw: b"no database" + raw[11:], id="magic"),
            pytest.param(lambda raw: raw[:20] + b"\xff" * 80 + raw[100:], id="header"),
            pytest.param(lambda raw: raw[:700], id="cut-short"),
            pytest.param(lambda raw: raw[:100] + b"\xff" * (len(raw) - 100), id="pages"),
        ],
    )
    def test_a_corrupt_file_is_named_and_untouched(self, store, path, damage):
        store.close()
        path.write_bytes(damage(path.read_bytes()))
        before = folder(path)
        with pytest.raises(StoreUnusable, match=r"store\.db cannot be used as a store: "):
            open_sqlite_store(path)
        assert folder(path) == before

    def test_damage_that_shows_later_is_named_too(self, store, path, a_skill):
        for number in range(60):
            store.add_version(a_skill(name=f"s{number}"), expected_head=None)
        store.close()
        raw = path.read_bytes()
        half = len(raw) // 2
        path.write_bytes(raw[:half] + b"\xff" * (len(raw) - half))
        with pytest.raises(StoreUnusable, match=r"store\.db cannot be used as a store: "):
            open_sqlite_store(path).heads()

    def test_a_folder_is_no_store(self, tmp_path):
        with pytest.raises(StoreUnusable, match="cannot be used as a store"):
            open_sqlite_store(tmp_path)

    def test_a_folder_that_cannot_be_made_is_named(self, tmp_path):
        (tmp_path / "file").write_text("")
        with pytest.raises(StoreUnusable, match="cannot be used as a store"):
            open_sqlite_store(tmp_path / "file" / "store.db")

    def test_an_empty_file_is_a_new_store(self, path):
        path.parent.mkdir()
        path.touch()
        store = open_sqlite_store(path)
        assert store.heads() == []
        store.close()


class TestWriting:
    @pytest.mark.parametrize("table", ["versions", "state_changes"])
    @pytest.mark.parametrize(
        "verb", ["UPDATE {} SET version = 7", "DELETE FROM {}"], ids=["update", "delete"]
    )
    def test_history_cannot_be_rewritten(self, store, path, a_skill, table, verb):
        store.add_version(a_skill(), expected_head=None)
        connection = sqlite3.connect(path)
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            connection.execute(verb.format(table))
        connection.close()

    def test_a_lock_that_is_never_let_go_is_reported_with_the_file(self, path, monkeypatch, a_skill):
        monkeypatch.setattr(sqlite_file, "BUSY_TIMEOUT_SECONDS", 0.05)
        store = open_sqlite_store(path)
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnusable, match=r"store\.db is in use: another process kept it locked for"):
            store.add_version(a_skill(), expected_head=None)
        assert store.heads() == []
        other.execute("ROLLBACK")
        store.add_version(a_skill(), expected_head=None)
        other.close()
        store.close()

    def test_feedback_goes_with_its_trace(self, path, a_trace):
        store = SqliteStore(sqlite_file.open_sqlite_file(path), traces_kept=1)
        store.add_trace(a_trace())
        store.add_feedback("t1", True, "", 1.0)
        store.add_trace(a_trace(id="t2"))
        store.close()
        connection = sqlite3.connect(path)
        assert connection.execute("SELECT count(*) FROM feedback").fetchone() == (0,)
        connection.close()


ADDING = """
import sys
from pathlib import Path
from skills_store.errors import VersionConflict
from skills_store.skill import Skill
from skills_store.sqlite import open_sqlite_store

skills = [Skill.model_validate_json(line) for line in Path(sys.argv[2]).read_text().splitlines()]
print("ready", flush=True)
sys.stdin.readline()
store = open_sqlite_store(Path(sys.argv[1]))
for skill in skills:
    try:
        store.add_version(skill, expected_head=None)
        print("won", skill.name, flush=True)
    except VersionConflict:
        print("lost", skill.name, flush=True)
store.close()
"""

COUNTING = """
import sys
from pathlib import Path
from skills_store.sqlite import open_sqlite_store
from skills_store.utility import Use

store = open_sqlite_store(Path(sys.argv[1]))
print("ready", flush=True)
sys.stdin.readline()
for at in range(200):
    store.record_use(Use("temperature", 1, "call", succeeded=True, world_fault=False, at=at))
store.close()
"""

WRITING_UNTIL_KILLED = """
import sys
from itertools import count
from pathlib import Path
from skills_store.skill import Skill
from skills_store.sqlite import open_sqlite_store

skill = Skill.model_validate_json(Path(sys.argv[2]).read_text())
store = open_sqlite_store(Path(sys.argv[1]))
for number in count():
    name = f"s{sys.argv[3]}_{number}"
    store.add_version(skill.model_copy(update={"name": name}), expected_head=None)
    store.move(name, 1, "active", reason="acknowledged", by="person", at=1.0)
    print(name, flush=True)
"""


class TestProcesses:
    def test_of_processes_that_add_the_same_new_skills_each_is_won_once(self, path, tmp_path, a_skill):
        names = [f"s{number}" for number in range(30)]
        given = tmp_path / "skills.jsonl"
        given.write_text("\n".join(a_skill(name=name).model_dump_json() for name in names))
        writers = [start(ADDING, path, given) for _ in range(3)]
        for writer in writers:
            assert writer.stdout.readline() == "ready\n"
        for writer in writers:
            writer.stdin.write("go\n")
            writer.stdin.flush()
        said = [writer.communicate(timeout=60) for writer in writers]
        assert [errors for _, errors in said] == ["", "", ""]
        lines = [line.split() for output, _ in said for line in output.splitlines()]
        assert sorted(name for word, name in lines if word == "won") == sorted(names)
        assert len(lines) == 3 * len(names)
        store = open_sqlite_store(path)
        assert sorted(skill.name for skill in store.heads()) == sorted(names)
        assert [len(store.changes(name)) for name in names] == [1] * len(names)
        store.close()

    def test_no_count_of_contending_processes_is_lost(self, store, path, a_skill):
        store.add_version(a_skill(), expected_head=None)
        writers = [start(COUNTING, path) for _ in range(3)]
        for writer in writers:
            assert writer.stdout.readline() == "ready\n"
        for writer in writers:
            writer.stdin.write("go\n")
            writer.stdin.flush()
        assert [writer.communicate(timeout=60)[1] for writer in writers] == ["", "", ""]
        assert store.use_counts("temperature").uses == 600

    def test_a_change_by_another_process_shows_in_the_revision(self, store, path, tmp_path, a_skill):
        before = store.revision()
        given = tmp_path / "skills.jsonl"
        given.write_text(a_skill().model_dump_json())
        writer = start(ADDING, path, given)
        assert writer.communicate("go\n", timeout=60) == ("ready\nwon temperature\n", "")
        assert store.revision() == before + 1

    def test_what_was_acknowledged_outlives_ten_kills(self, path, tmp_path, a_skill):
        given = tmp_path / "skill.json"
        given.write_text(a_skill().model_dump_json())
        acknowledged: list[str] = []
        for kill in range(10):
            writer = start(WRITING_UNTIL_KILLED, path, given, kill)
            acknowledged += [writer.stdout.readline().strip() for _ in range(3 * kill + 1)]
            os.kill(writer.pid, signal.SIGKILL)
            acknowledged += writer.stdout.read().split()  # not `communicate`: it forgets what was read ahead
            assert writer.communicate(timeout=60) == ("", "")
        store = open_sqlite_store(path)
        for name in acknowledged:
            assert store.head(name).state == "active"
            assert [change.after for change in store.changes(name)] == ["proposed", "active"]
        unfinished = {skill.name for skill in store.heads()} - set(acknowledged)
        assert len(unfinished) <= 10
        store.close()
        connection = sqlite3.connect(path)
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        connection.close()
