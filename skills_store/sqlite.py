"""The durable store: `Store` on one SQLite file, safe under several processes.

Tables are `migrations`, opening and transactions `sqlite_file`. Skills are written so that they
outlive a power cut; statistics and traces so that they outlive a killed process.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Mapping
from dataclasses import astuple, fields
from pathlib import Path
from typing import cast

from pydantic import BaseModel, JsonValue, TypeAdapter

from catalog.era import Era, KnownEra
from catalog.tools import Snapshot, Tool, ToolId
from skills_store.episodes import EPISODES_KEPT, Audit, StoreSizes, TaskEpisode
from skills_store.errors import UnknownSkill, VersionConflict
from skills_store.lifecycle import (
    Actor,
    StateChange,
    check_entry,
    check_pinned,
    check_transition,
    check_words,
)
from skills_store.skill import Skill, SkillState, SkillWords
from skills_store.sqlite_approvals import SqliteApprovals
from skills_store.sqlite_drives import SqliteDrives
from skills_store.sqlite_experiences import SqliteExperiences
from skills_store.sqlite_file import SqliteFile, open_sqlite_file
from skills_store.sqlite_jobs import SqliteJobs
from skills_store.store import TRACES_KEPT, check_next_version, check_not_called, check_pin, feedback_of
from skills_store.trace import RecordingSummary, Trace
from skills_store.utility import Use, UseCounts

__all__ = ["SqliteStore", "open_sqlite_store"]

_SKILL = "SELECT document, state, reason, words FROM versions JOIN states USING (name, version)"
_HEADS = (
    "SELECT document, state, reason, words FROM skills"
    " JOIN versions ON versions.name = skills.name AND versions.version = skills.head"
    " JOIN states ON states.name = skills.name AND states.version = skills.head"
)

_EPISODE = ", ".join(field.name for field in fields(TaskEpisode))
_AUDIT = ", ".join(field.name for field in fields(Audit))

_tools: TypeAdapter[tuple[Tool, ...]] = TypeAdapter(tuple[Tool, ...])


def open_sqlite_store(path: Path) -> SqliteStore:
    """Open the store in a file, creating it and its folder where they are missing.

    Raises:
        StoreUnusable: the file is corrupt, another program's, from a newer version, or cannot be
            opened; it was not written to.
    """
    return SqliteStore(open_sqlite_file(path))


class SqliteStore:
    """`Store` on an open file, which it owns."""

    def __init__(self, file: SqliteFile, *, traces_kept: int = TRACES_KEPT) -> None:
        self._file = file
        self._traces_kept = traces_kept

    def add_version(self, skill: Skill, *, expected_head: int | None, if_new: bool = False) -> None:
        by = check_entry(skill)
        document = _text(skill, leaving_out={"state", "reason"})
        name, number = skill.name, skill.version
        with self._file.write() as connection:
            check_next_version(
                skill,
                expected_head=expected_head,
                head=_head_of(connection, name),
                latest=_latest_of(connection, name),
            )
            if if_new and (twin := _twin_of(connection, skill.content_hash)) is not None:
                raise VersionConflict(f"{twin.name}@{twin.version} has the workflow of {name}")
            connection.execute(
                "INSERT INTO versions (name, version, content_hash, document) VALUES (?, ?, ?, ?)",
                (name, number, skill.content_hash, document),
            )
            connection.execute(
                "INSERT INTO states (name, version, state, reason) VALUES (?, ?, ?, ?)",
                (name, number, skill.state, skill.reason),
            )
            born = StateChange(number, None, "proposed", by, "added", skill.created_at)
            _log(connection, name, born)
            if skill.state != "proposed":
                moved = StateChange(number, "proposed", skill.state, by, skill.reason, skill.created_at)
                _log(connection, name, moved)
            connection.execute(
                "INSERT INTO skills (name, head) VALUES (?, ?)"
                " ON CONFLICT (name) DO UPDATE SET head = coalesce(pinned, excluded.head)",
                (name, number),
            )
            _advance(connection)

    def head(self, name: str) -> Skill | None:
        with self._file.read() as connection:
            return _skill(connection.execute(f"{_HEADS} WHERE skills.name = ?", (name,)).fetchone())

    def version(self, name: str, version: int) -> Skill | None:
        with self._file.read() as connection:
            return _version_of(connection, name, version)

    def versions(self, name: str) -> list[Skill]:
        with self._file.read() as connection:
            rows = connection.execute(f"{_SKILL} WHERE name = ? ORDER BY version", (name,)).fetchall()
        return [_parsed(row) for row in rows]

    def heads(self) -> list[Skill]:
        with self._file.read() as connection:
            rows = connection.execute(f"{_HEADS} ORDER BY skills.name").fetchall()
        return [_parsed(row) for row in rows]

    def move(
        self,
        name: str,
        version: int,
        to: SkillState,
        *,
        reason: str,
        by: Actor,
        at: float,
        words: SkillWords | None = None,
    ) -> Skill:
        with self._file.write() as connection:
            skill = _known(connection, name, version)
            check_transition(skill, to, by)
            check_pinned(skill, to, by, _pinned_of(connection, name))
            if words is not None:
                check_words(skill, to)
                skill = skill.worded(words)
                connection.execute(
                    "UPDATE states SET words = ? WHERE name = ? AND version = ?",
                    (words.model_dump_json(), name, version),
                )
            connection.execute(
                "UPDATE states SET state = ?, reason = ? WHERE name = ? AND version = ?",
                (to, reason, name, version),
            )
            _log(connection, name, StateChange(version, skill.state, to, by, reason, at))
            _advance(connection)
        return skill.model_copy(update={"state": to, "reason": reason})

    def changes(self, name: str) -> list[StateChange]:
        with self._file.read() as connection:
            rows = connection.execute(
                "SELECT version, before, after, by, reason, at FROM state_changes WHERE name = ? ORDER BY id",
                (name,),
            ).fetchall()
        return [StateChange(*row) for row in rows]

    def set_head(self, name: str, version: int, *, expected_head: int) -> None:
        with self._file.write() as connection:
            _known(connection, name, version)
            head = _head_of(connection, name)
            if head != expected_head:
                raise VersionConflict(f"{name} was expected to have head {expected_head}; it is {head}")
            check_pin(name, version, _pinned_of(connection, name))
            connection.execute("UPDATE skills SET head = ? WHERE name = ?", (version, name))
            _advance(connection)

    def pin(self, name: str, version: int | None) -> None:
        with self._file.write() as connection:
            _known(connection, name, version or 1)
            connection.execute(
                "UPDATE skills SET pinned = ?1, head = coalesce(?1, head) WHERE name = ?2", (version, name)
            )
            _advance(connection)

    def pinned(self, name: str) -> int | None:
        with self._file.read() as connection:
            return _pinned_of(connection, name)

    def delete(self, name: str) -> None:
        with self._file.write() as connection:
            _known(connection, name, 1)
            check_not_called(name, map(_parsed, connection.execute(_SKILL).fetchall()))
            connection.execute("INSERT INTO deleting (name) VALUES (?)", (name,))
            for table in ("uses", "episodes", "audits"):
                connection.execute(f"DELETE FROM {table} WHERE skill = ?", (name,))
            for table in ("state_changes", "states", "skills", "versions", "deleting"):
                connection.execute(f"DELETE FROM {table} WHERE name = ?", (name,))
            _advance(connection)

    def by_content_hash(self, content_hash: str) -> Skill | None:
        with self._file.read() as connection:
            return _twin_of(connection, content_hash)

    def record_use(self, use: Use) -> None:
        with self._file.write(durable=False) as connection:
            _known(connection, use.skill, use.version)
            connection.execute(
                "INSERT INTO uses (skill, version, route, succeeded, world_fault, at, trace)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                (use.skill, use.version, use.route, use.succeeded, use.world_fault, use.at, use.trace),
            )

    def use_counts(self, name: str) -> UseCounts:
        with self._file.read() as connection:
            row = connection.execute(
                "SELECT count(*), coalesce(sum(succeeded), 0), coalesce(sum(world_fault), 0)"
                " FROM uses WHERE skill = ?",
                (name,),
            ).fetchone()
        return UseCounts(*row)

    def uses(self, name: str, limit: int) -> list[Use]:
        with self._file.read() as connection:
            rows = connection.execute(
                "SELECT skill, version, route, succeeded, world_fault, at, trace FROM uses"
                " WHERE skill = ? ORDER BY id DESC LIMIT ?",
                (name, limit),
            ).fetchall()
        return [
            Use(skill, version, route, bool(succeeded), bool(world_fault), at, trace)
            for skill, version, route, succeeded, world_fault, at, trace in rows
        ]

    def record_episode(self, episode: TaskEpisode) -> None:
        row = astuple(episode)
        with self._file.write(durable=False) as connection:
            if episode.skill is not None:
                _known(connection, episode.skill, episode.version or 0)
            places = ", ".join("?" * len(row))
            connection.execute(f"INSERT INTO episodes ({_EPISODE}) VALUES ({places})", row)
            connection.execute(
                "DELETE FROM episodes WHERE id <= (SELECT max(id) FROM episodes) - ?", (EPISODES_KEPT,)
            )

    def episodes(self, limit: int, skill: str | None = None) -> list[TaskEpisode]:
        with self._file.read() as connection:
            rows = connection.execute(
                f"SELECT {_EPISODE} FROM episodes WHERE ?1 IS NULL OR skill = ?1 ORDER BY id DESC LIMIT ?2",
                (skill, limit),
            ).fetchall()
        return [TaskEpisode(*row) for row in rows]

    def unguided(self, limit: int, until: float) -> list[TaskEpisode]:
        with self._file.read() as connection:
            rows = connection.execute(
                f"SELECT {_EPISODE} FROM episodes WHERE skill IS NULL AND at <= ? ORDER BY id DESC LIMIT ?",
                (until, limit),
            ).fetchall()
        return [TaskEpisode(*row) for row in rows]

    def count_trials(self, name: str, version: int) -> int:
        with self._file.read() as connection:
            return connection.execute(
                "SELECT count(*) FROM episodes WHERE skill = ? AND version = ? AND arm IS NOT NULL",
                (name, version),
            ).fetchone()[0]

    def record_audit(self, audit: Audit) -> None:
        with self._file.write(durable=False) as connection:
            _known(connection, audit.skill, audit.version)
            connection.execute(f"INSERT INTO audits ({_AUDIT}) VALUES (?, ?, ?, ?, ?, ?)", astuple(audit))

    def audits(self, name: str, limit: int) -> list[Audit]:
        with self._file.read() as connection:
            rows = connection.execute(
                f"SELECT {_AUDIT} FROM audits WHERE skill = ? ORDER BY id DESC LIMIT ?", (name, limit)
            ).fetchall()
        return [
            Audit(skill, version, kind, None if passed is None else bool(passed), detail, at)
            for skill, version, kind, passed, detail, at in rows
        ]

    def sizes(self) -> StoreSizes:
        with self._file.read() as connection:

            def count(what: str) -> int:
                return connection.execute(f"SELECT count(*) FROM {what}").fetchone()[0]

            (pages,) = connection.execute("PRAGMA page_count").fetchone()
            (page_bytes,) = connection.execute("PRAGMA page_size").fetchone()
            return StoreSizes(
                skills=count("skills"),
                versions=count("versions"),
                uses=count("uses"),
                traces=count("traces WHERE recording IS NULL"),
                recorded_calls=count("traces WHERE recording IS NOT NULL"),
                episodes=count("episodes"),
                audits=count("audits"),
                bytes=pages * page_bytes,
            )

    def drop_traces(self, before: float, *, recorded: bool, keep: Collection[str] = ()) -> int:
        is_meant = "recording IS NOT NULL" if recorded else "recording IS NULL"
        with self._file.write(durable=False) as connection:
            # A trace of a file from before times were kept says no time, and is old.
            return connection.execute(
                f"DELETE FROM traces WHERE coalesce(started_at, 0) < ?1 AND {is_meant}"
                " AND id NOT IN (SELECT value FROM json_each(?2))"
                " AND coalesce(recording, '') NOT IN (SELECT value FROM json_each(?2))",
                (before, json.dumps(sorted(keep))),
            ).rowcount

    def published(self) -> tuple[str, ...]:
        with self._file.read() as connection:
            return _published(connection)

    def publish(self, names: Iterable[str]) -> None:
        wanted = tuple(sorted(set(names)))
        with self._file.write() as connection:
            if unknown := [name for name in wanted if _head_of(connection, name) is None]:
                raise UnknownSkill(f"no skill named {', '.join(unknown)}")
            if wanted == _published(connection):
                return
            connection.execute("UPDATE skills SET published = 0")
            connection.executemany(
                "UPDATE skills SET published = 1 WHERE name = ?", [(name,) for name in wanted]
            )
            _advance(connection)

    def revision(self) -> int:
        with self._file.read() as connection:
            return connection.execute("SELECT value FROM revisions").fetchone()[0]

    def add_trace(self, trace: Trace) -> None:
        document = _text(trace)
        with self._file.write(durable=False) as connection:
            if _trace_number(connection, trace.id) is not None:
                raise ValueError(f"a trace with id {trace.id} is there")
            connection.execute(
                "INSERT INTO traces (id, document, recording, started_at) VALUES (?, ?, ?, ?)",
                (trace.id, document, trace.recording, trace.started_at),
            )
            connection.execute(
                "DELETE FROM traces WHERE seq <= (SELECT max(seq) FROM traces) - ?", (self._traces_kept,)
            )

    def trace(self, trace_id: str) -> Trace | None:
        with self._file.read() as connection:
            row = connection.execute("SELECT seq, document FROM traces WHERE id = ?", (trace_id,)).fetchone()
            return None if row is None else _trace(connection, *row)

    def traces(self, limit: int) -> list[Trace]:
        with self._file.read() as connection:
            rows = connection.execute(
                "SELECT seq, document FROM traces ORDER BY seq DESC LIMIT ?", (limit,)
            ).fetchall()
            return [_trace(connection, *row) for row in rows]

    def recording(self, name: str) -> list[Trace]:
        with self._file.read() as connection:
            rows = connection.execute(
                "SELECT seq, document FROM traces WHERE recording = ? ORDER BY seq", (name,)
            ).fetchall()
            return [_trace(connection, *row) for row in rows]

    def recordings(self, limit: int) -> list[RecordingSummary]:
        with self._file.read() as connection:
            rows = connection.execute(
                "SELECT recording, count(*), min(started_at), max(started_at) FROM traces"
                " WHERE recording IS NOT NULL GROUP BY recording ORDER BY max(seq) DESC LIMIT ?",
                (limit,),
            ).fetchall()
        return [RecordingSummary(*row) for row in rows]

    def drop_recording(self, name: str) -> int:
        with self._file.write(durable=False) as connection:
            return connection.execute("DELETE FROM traces WHERE recording = ?", (name,)).rowcount

    def add_feedback(self, trace: str, passed: bool, detail: str, at: float) -> None:
        with self._file.write(durable=False) as connection:
            number = _trace_number(connection, trace)
            if number is None:
                raise LookupError(f"no trace {trace}")
            connection.execute(
                "INSERT INTO feedback (trace, passed, detail, at) VALUES (?, ?, ?, ?)",
                (number, passed, detail, at),
            )

    def save_snapshot(self, snapshot: Snapshot, at: float, *, empty: Iterable[str] = ()) -> None:
        rows = [
            (server, _json(_tools.dump_python(snapshot.of_server(server), mode="json")), at)
            for server in sorted(snapshot.servers.union(empty))
        ]
        with self._file.write(durable=False) as connection:
            connection.executemany(
                "INSERT INTO servers (name, tools, saved_at) VALUES (?, ?, ?) ON CONFLICT (name)"
                " DO UPDATE SET tools = excluded.tools, saved_at = excluded.saved_at",
                rows,
            )

    def snapshot(self) -> Snapshot:
        with self._file.read() as connection:
            rows = connection.execute("SELECT tools FROM servers ORDER BY name").fetchall()
        return Snapshot.of(*(tool for (text,) in rows for tool in _tools.validate_python(json.loads(text))))

    def check_contracts(self, contracts: Mapping[ToolId, str]) -> None:
        with self._file.write(durable=False) as connection:
            connection.executemany(
                "INSERT INTO contracts (server, tool, contract_hash) VALUES (?, ?, ?)"
                " ON CONFLICT (server, tool) DO UPDATE SET contract_hash = excluded.contract_hash",
                [(tool.server, tool.tool, contract) for tool, contract in contracts.items()],
            )

    def checked_contracts(self) -> dict[ToolId, str]:
        with self._file.read() as connection:
            rows = connection.execute("SELECT server, tool, contract_hash FROM contracts").fetchall()
        return {ToolId(server, tool): contract for server, tool, contract in rows}

    def save_eras(self, eras: Mapping[str, KnownEra], at: float) -> None:
        rows = [(server, known.era, known.launch, at) for server, known in sorted(eras.items())]
        with self._file.write(durable=False) as connection:
            connection.executemany(
                "INSERT INTO eras (server, era, launch, saved_at) VALUES (?, ?, ?, ?) ON CONFLICT (server)"
                " DO UPDATE SET era = excluded.era, launch = excluded.launch, saved_at = excluded.saved_at",
                rows,
            )

    def eras(self) -> dict[str, KnownEra]:
        with self._file.read() as connection:
            rows = connection.execute("SELECT server, era, launch FROM eras").fetchall()
        return {server: KnownEra(cast("Era", era), launch) for server, era, launch in rows}

    def jobs(self, principal: str) -> SqliteJobs:
        return SqliteJobs(self._file, principal)

    def approvals(self, principal: str) -> SqliteApprovals:
        return SqliteApprovals(self._file, principal)

    def experiences(self, principal: str) -> SqliteExperiences:
        return SqliteExperiences(self._file, principal)

    def drives(self, principal: str) -> SqliteDrives:
        return SqliteDrives(self._file, principal)

    def close(self) -> None:
        self._file.close()


def _text(record: BaseModel, leaving_out: set[str] | None = None) -> str:
    return _json(record.model_dump(mode="json", exclude=leaving_out))


def _json(value: object) -> str:
    # ASCII with escapes: a result may hold lone surrogates, which no UTF-8 text can.
    return json.dumps(value, allow_nan=False, separators=(",", ":"))


def _parsed(row: tuple[str, str, str, str | None]) -> Skill:
    document, state, reason, words = row
    known = cast("dict[str, JsonValue]", json.loads(document))
    skill = Skill.model_validate({**known, "state": state, "reason": reason})
    return skill.worded(SkillWords.model_validate_json(words) if words else None)


def _skill(row: tuple[str, str, str, str | None] | None) -> Skill | None:
    return None if row is None else _parsed(row)


def _version_of(connection: sqlite3.Connection, name: str, version: int) -> Skill | None:
    return _skill(connection.execute(f"{_SKILL} WHERE name = ? AND version = ?", (name, version)).fetchone())


def _known(connection: sqlite3.Connection, name: str, version: int) -> Skill:
    skill = _version_of(connection, name, version)
    if skill is None:
        raise UnknownSkill(f"no version {version} of a skill named {name}")
    return skill


def _twin_of(connection: sqlite3.Connection, content_hash: str) -> Skill | None:
    row = connection.execute(
        f"{_SKILL} WHERE content_hash = ? ORDER BY versions.rowid DESC LIMIT 1", (content_hash,)
    ).fetchone()
    return _skill(row)


def _pinned_of(connection: sqlite3.Connection, name: str) -> int | None:
    row = connection.execute("SELECT pinned FROM skills WHERE name = ?", (name,)).fetchone()
    return None if row is None else row[0]


def _head_of(connection: sqlite3.Connection, name: str) -> int | None:
    row = connection.execute("SELECT head FROM skills WHERE name = ?", (name,)).fetchone()
    return None if row is None else row[0]


def _latest_of(connection: sqlite3.Connection, name: str) -> int:
    row = connection.execute("SELECT max(version) FROM versions WHERE name = ?", (name,)).fetchone()
    return row[0] or 0


def _published(connection: sqlite3.Connection) -> tuple[str, ...]:
    rows = connection.execute("SELECT name FROM skills WHERE published ORDER BY name").fetchall()
    return tuple(name for (name,) in rows)


def _log(connection: sqlite3.Connection, name: str, change: StateChange) -> None:
    connection.execute(
        "INSERT INTO state_changes (name, version, before, after, by, reason, at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        (name, change.version, change.before, change.after, change.by, change.reason, change.at),
    )


def _advance(connection: sqlite3.Connection) -> None:
    connection.execute("UPDATE revisions SET value = value + 1")


def _trace_number(connection: sqlite3.Connection, trace_id: str) -> int | None:
    row = connection.execute("SELECT seq FROM traces WHERE id = ?", (trace_id,)).fetchone()
    return None if row is None else row[0]


def _trace(connection: sqlite3.Connection, number: int, document: str) -> Trace:
    trace = Trace.model_validate(json.loads(document))
    rows = connection.execute("SELECT passed, detail FROM feedback WHERE trace = ? ORDER BY id", (number,))
    said = tuple(feedback_of(bool(passed), detail) for passed, detail in rows)
    return trace.model_copy(update={"verifications": (*trace.verifications, *said)}) if said else trace
