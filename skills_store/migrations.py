"""The tables of the store's SQLite file, as the steps that lead there from an empty file.

`PRAGMA user_version` counts the steps taken. A step that was released is never changed; a new
need is a new step at the end. Opening the file and its transactions belong to `sqlite_file`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlite_utils import Database

__all__ = ["APPLICATION_ID", "SCHEMA_VERSION", "apply_migrations"]

APPLICATION_ID = 0x534B424B
"""`SKBK`: tells a file of ours from a SQLite file of another program."""


def apply_migrations(connection: sqlite3.Connection) -> None:
    """Take the steps the file has not seen yet, inside the transaction that is open."""
    (taken,) = connection.execute("PRAGMA user_version").fetchone()
    if taken >= SCHEMA_VERSION:
        return
    from sqlite_utils import Database  # a tenth of a second that opening an up-to-date file need not take

    database = Database(connection, recursive_triggers=False, execute_plugins=False)
    for step in _STEPS[taken:]:
        step(database)
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")


def _create_all(database: Database) -> None:
    _create_skills(database)
    _create_experience(database)


def _create_skills(database: Database) -> None:
    text, number, real = str, int, float
    database.create_table(
        "versions",
        {
            "name": text,
            "version": number,
            "content_hash": text,
            "document": text,
        },
        pk=("name", "version"),
        not_null={"content_hash", "document"},
    )
    database.table("versions").create_index(["content_hash"])
    database.create_table(
        "skills",
        {"name": text, "head": number, "published": number},
        pk="name",
        not_null={"head", "published"},
        defaults={"published": 0},
        foreign_keys=[(("name", "head"), "versions", ("name", "version"))],
    )
    database.create_table(
        "states",
        {"name": text, "version": number, "state": text, "reason": text},
        pk=("name", "version"),
        not_null={"state", "reason"},
        foreign_keys=[(("name", "version"), "versions", ("name", "version"))],
    )
    database.create_table(
        "state_changes",
        {
            "id": number,
            "name": text,
            "version": number,
            "before": text,
            "after": text,
            "by": text,
            "reason": text,
            "at": real,
        },
        pk="id",
        not_null={"name", "version", "after", "by", "reason", "at"},
        foreign_keys=[(("name", "version"), "versions", ("name", "version"))],
    )
    database.table("state_changes").create_index(["name"])
    for table in ("versions", "state_changes"):
        _forbid_changes(database, table)
    database.create_table("revisions", {"id": number, "value": number}, pk="id", not_null={"value"})
    database.conn.execute("INSERT INTO revisions (id, value) VALUES (1, 0)")


def _forbid_changes(database: Database, table: str) -> None:
    for verb in ("UPDATE", "DELETE"):
        database.conn.execute(
            f"CREATE TRIGGER {table}_no_{verb.lower()} BEFORE {verb} ON {table}"
            f" BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
        )


def _create_experience(database: Database) -> None:
    from sqlite_utils.db import ForeignKey

    text, number, real = str, int, float
    database.create_table(
        "uses",
        {
            "id": number,
            "skill": text,
            "version": number,
            "route": text,
            "succeeded": number,
            "world_fault": number,
            "at": real,
            "trace": text,
        },
        pk="id",
        not_null={"skill", "version", "route", "succeeded", "world_fault", "at"},
        foreign_keys=[(("skill", "version"), "versions", ("name", "version"))],
    )
    database.table("uses").create_index(["skill"])
    database.create_table(
        "traces", {"seq": number, "id": text, "document": text}, pk="seq", not_null={"id", "document"}
    )
    database.table("traces").create_index(["id"], unique=True)
    database.create_table(
        "feedback",
        {"id": number, "trace": number, "passed": number, "detail": text, "at": real},
        pk="id",
        not_null={"trace", "passed", "detail", "at"},
        foreign_keys=[ForeignKey("feedback", "trace", "traces", "seq", on_delete="CASCADE")],
    )
    database.table("feedback").create_index(["trace"])
    database.create_table(
        "servers",
        {"name": text, "tools": text, "saved_at": real},
        pk="name",
        not_null={"tools", "saved_at"},
    )


def _create_eras(database: Database) -> None:
    text, real = str, float
    database.create_table(
        "eras",
        {"server": text, "era": text, "launch": text, "saved_at": real},
        pk="server",
        not_null={"era", "launch", "saved_at"},
    )


def _create_contracts(database: Database) -> None:
    database.create_table(
        "contracts",
        {"server": str, "tool": str, "contract_hash": str},
        pk=("server", "tool"),
        not_null={"contract_hash"},
    )


def _add_recordings(database: Database) -> None:
    """Conversations whose relayed calls belong together, and when each call began."""
    traces = database.table("traces")
    traces.add_column("recording", str)
    traces.add_column("started_at", float)
    traces.create_index(["recording"])


def _add_control(database: Database) -> None:
    """Pinned names, and names that are being deleted, which alone may leave the append-only tables."""
    database.table("skills").add_column("pinned", int)
    database.create_table("deleting", {"name": str}, pk="name")
    for table in ("versions", "state_changes"):
        database.conn.execute(f"DROP TRIGGER {table}_no_delete")
        database.conn.execute(
            f"CREATE TRIGGER {table}_no_delete BEFORE DELETE ON {table}"
            " WHEN NOT EXISTS (SELECT 1 FROM deleting WHERE deleting.name = OLD.name)"
            f" BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
        )


def _add_curation(database: Database) -> None:
    """What became of tasks, and what audits found."""
    text, number, real = str, int, float
    version = [(("skill", "version"), "versions", ("name", "version"))]
    database.create_table(
        "episodes",
        {
            "id": number,
            "task": text,
            "route": text,
            "outcome": text,
            "at": real,
            "tokens": number,
            "calls": number,
            "seconds": real,
            "stratum": text,
            "skill": text,
            "version": number,
            "arm": text,
            "share": real,
            "trace": text,
        },
        pk="id",
        not_null={"task", "route", "outcome", "at", "tokens", "calls", "seconds", "stratum", "share"},
        foreign_keys=version,
    )
    database.table("episodes").create_index(["skill"])
    database.create_table(
        "audits",
        {
            "id": number,
            "skill": text,
            "version": number,
            "kind": text,
            "passed": number,
            "detail": text,
            "at": real,
        },
        pk="id",
        not_null={"skill", "version", "kind", "detail", "at"},
        foreign_keys=version,
    )
    database.table("audits").create_index(["skill"])


def _create_jobs(database: Database) -> None:
    """Long calls with the journal of what they did, and what others want of whoever runs them."""
    from sqlite_utils.db import ForeignKey

    text, number, real = str, int, float
    database.create_table(
        "jobs",
        {
            "seq": number,
            "id": text,
            "principal": text,
            "document": text,
            "is_ended": number,
            "owner": text,
            "lease_until": real,
            "expires_at": real,
        },
        pk="seq",
        not_null={"id", "principal", "document", "is_ended", "lease_until"},
    )
    database.table("jobs").create_index(["id"], unique=True)
    database.table("jobs").create_index(["principal", "is_ended"])
    database.create_table(
        "job_calls",
        {"job": text, "number": number, "document": text},
        pk=("job", "number"),
        not_null={"document"},
        foreign_keys=[ForeignKey("job_calls", "job", "jobs", "id", on_delete="CASCADE")],
    )
    database.create_table(
        "job_messages",
        {"id": number, "job": text, "document": text},
        pk="id",
        not_null={"job", "document"},
        foreign_keys=[ForeignKey("job_messages", "job", "jobs", "id", on_delete="CASCADE")],
    )
    database.create_table(
        "approvals",
        {"principal": text, "id": text, "document": text},
        pk=("principal", "id"),
        not_null={"document"},
    )


def _add_experiences(database: Database) -> None:
    """Lessons of earlier runs, each principal's its own."""
    database.create_table(
        "experiences",
        {"principal": str, "id": str, "expires_at": float, "document": str},
        pk=("principal", "id"),
        not_null={"expires_at", "document"},
    )


def _add_words(database: Database) -> None:
    """Words that a model put beside a version's body when it became active; its document stays as it is."""
    database.table("states").add_column("words", str)


def _add_drives(database: Database) -> None:
    """What driven models were shown and said, packed, each principal's its own."""
    database.create_table(
        "drives",
        {"seq": int, "principal": str, "id": str, "at": float, "content": bytes},
        pk="seq",
        not_null={"principal", "id", "at", "content"},
    )
    database.table("drives").create_index(["principal", "id"], unique=True)


_STEPS: tuple[Callable[[Database], None], ...] = (
    _create_all,
    _create_eras,
    _create_contracts,
    _add_recordings,
    _add_control,
    _add_curation,
    _create_jobs,
    _add_experiences,
    _add_words,
    _add_drives,
)

SCHEMA_VERSION = len(_STEPS)
"""The `user_version` this code writes."""
