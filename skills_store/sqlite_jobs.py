"""`JobStore` on the store's SQLite file: every statement is of one principal alone."""

from __future__ import annotations

import json
import sqlite3

from pydantic import BaseModel

from skills_store.jobs import Job, JobCall, JobMessage, is_ended
from skills_store.sqlite_file import SqliteFile

__all__ = ["SqliteJobs"]


class SqliteJobs:
    """The jobs of one principal in an open file, which is the store's.

    Args:
        file: open.
        principal: whose jobs are kept and shown; those of others are not there.
    """

    def __init__(self, file: SqliteFile, principal: str) -> None:
        self._file = file
        self._principal = principal

    def add(self, job: Job, *, owner: str, lease_until: float) -> None:
        with self._file.write() as connection:
            connection.execute(
                "INSERT INTO jobs (id, principal, document, is_ended, owner, lease_until, expires_at)"
                " VALUES (?, ?, ?, 0, ?, ?, NULL)",
                (job.id, self._principal, _text(job), owner, lease_until),
            )

    def job(self, job_id: str) -> Job | None:
        with self._file.read() as connection:
            row = connection.execute(
                "SELECT document FROM jobs WHERE id = ? AND principal = ?", (job_id, self._principal)
            ).fetchone()
        return None if row is None else _job(row)

    def jobs(self, limit: int) -> list[Job]:
        with self._file.read() as connection:
            rows = connection.execute(
                "SELECT document FROM jobs WHERE principal = ? ORDER BY seq DESC LIMIT ?",
                (self._principal, limit),
            ).fetchall()
        return [_job(row) for row in rows]

    def save(self, job: Job, *, owner: str) -> bool:
        with self._file.write(durable=is_ended(job)) as connection:
            changed = connection.execute(
                "UPDATE jobs SET document = ?, is_ended = ?, expires_at = ?"
                " WHERE id = ? AND principal = ? AND owner = ?",
                (_text(job), is_ended(job), job.expires_at, job.id, self._principal, owner),
            )
            return changed.rowcount == 1

    def claim(self, owner: str, *, now: float, lease_until: float) -> list[Job]:
        if not self._has_free(now):
            return []
        with self._file.write() as connection:
            rows = connection.execute(
                "UPDATE jobs SET owner = ?, lease_until = ? WHERE principal = ? AND is_ended = 0"
                " AND (owner IS NULL OR lease_until < ?) RETURNING document",
                (owner, lease_until, self._principal, now),
            ).fetchall()
        return [_job(row) for row in rows]

    def renew(self, owner: str, lease_until: float) -> list[JobMessage]:
        with self._file.write(durable=False) as connection:
            connection.execute(
                "UPDATE jobs SET lease_until = ? WHERE owner = ? AND principal = ? AND is_ended = 0",
                (lease_until, owner, self._principal),
            )
            rows = connection.execute(
                "DELETE FROM job_messages WHERE job IN"
                " (SELECT id FROM jobs WHERE owner = ? AND principal = ?) RETURNING id, document",
                (owner, self._principal),
            ).fetchall()
        return [JobMessage.model_validate(json.loads(text)) for _, text in sorted(rows)]

    def release(self, owner: str) -> None:
        with self._file.write() as connection:
            connection.execute(
                "UPDATE jobs SET owner = NULL WHERE owner = ? AND principal = ?", (owner, self._principal)
            )

    def tell(self, message: JobMessage) -> bool:
        with self._file.write(durable=False) as connection:
            row = connection.execute(
                "SELECT 1 FROM jobs WHERE id = ? AND principal = ? AND is_ended = 0",
                (message.job, self._principal),
            ).fetchone()
            if row is None:
                return False
            connection.execute(
                "INSERT INTO job_messages (job, document) VALUES (?, ?)", (message.job, _text(message))
            )
            return True

    def begin_call(self, job_id: str, call: JobCall, *, owner: str) -> bool:
        # What may not be repeated must be known after a power cut too.
        with self._file.write(durable=not call.is_free) as connection:
            row = connection.execute(
                "SELECT 1 FROM jobs WHERE id = ? AND principal = ? AND owner = ?",
                (job_id, self._principal, owner),
            ).fetchone()
            if row is not None:
                _put_call(connection, job_id, call)
            return row is not None

    def end_call(self, job_id: str, call: JobCall) -> None:
        with self._file.write(durable=not call.is_free) as connection:
            _put_call(connection, job_id, call)

    def calls(self, job_id: str) -> list[JobCall]:
        with self._file.read() as connection:
            rows = connection.execute(
                "SELECT job_calls.document FROM job_calls JOIN jobs ON jobs.id = job_calls.job"
                " WHERE job = ? AND principal = ? ORDER BY number",
                (job_id, self._principal),
            ).fetchall()
        return [JobCall.model_validate(json.loads(text)) for (text,) in rows]

    def forget(self, *, now: float) -> int:
        with self._file.read() as connection:
            expired = connection.execute(
                "SELECT 1 FROM jobs WHERE expires_at < ? AND principal = ? LIMIT 1", (now, self._principal)
            ).fetchone()
        if expired is None:
            return 0
        with self._file.write(durable=False) as connection:
            return connection.execute(
                "DELETE FROM jobs WHERE expires_at < ? AND principal = ?", (now, self._principal)
            ).rowcount

    def _has_free(self, now: float) -> bool:
        with self._file.read() as connection:
            row = connection.execute(
                "SELECT 1 FROM jobs WHERE principal = ? AND is_ended = 0"
                " AND (owner IS NULL OR lease_until < ?) LIMIT 1",
                (self._principal, now),
            ).fetchone()
        return row is not None


def _put_call(connection: sqlite3.Connection, job_id: str, call: JobCall) -> None:
    connection.execute(
        "INSERT INTO job_calls (job, number, document) VALUES (?, ?, ?)"
        " ON CONFLICT (job, number) DO UPDATE SET document = excluded.document",
        (job_id, call.number, _text(call)),
    )


def _text(record: BaseModel) -> str:
    # ASCII with escapes: an answer may hold lone surrogates, which no UTF-8 text can.
    return json.dumps(record.model_dump(mode="json"), allow_nan=False, separators=(",", ":"))


def _job(row: tuple[str]) -> Job:
    return Job.model_validate(json.loads(row[0]))
