"""`ExperienceStore` on the store's SQLite file: every statement is of one principal alone."""

from __future__ import annotations

import json
import sqlite3

from skills_store.experience.shelf import UNITS_KEPT
from skills_store.experience.unit import ExperienceUnit
from skills_store.sqlite_file import SqliteFile

__all__ = ["SqliteExperiences"]


class SqliteExperiences:
    """The units of one principal in an open file, which is the store's."""

    def __init__(self, file: SqliteFile, principal: str) -> None:
        self._file = file
        self._principal = principal

    def put(self, unit: ExperienceUnit) -> None:
        with self._file.write() as connection:
            self._put(connection, unit)
            connection.execute(
                "DELETE FROM experiences WHERE principal = ? AND id IN (SELECT id FROM experiences"
                " WHERE principal = ? ORDER BY expires_at DESC, id DESC LIMIT -1 OFFSET ?)",
                (self._principal, self._principal, UNITS_KEPT),
            )

    def count(self, unit_id: str, *, guided: bool, right: bool, helped: bool) -> ExperienceUnit | None:
        with self._file.write() as connection:
            row = connection.execute(
                "SELECT document FROM experiences WHERE principal = ? AND id = ?", (self._principal, unit_id)
            ).fetchone()
            if row is None:
                return None
            unit = ExperienceUnit.model_validate(json.loads(row[0]))
            unit = unit.seen(guided=guided, right=right, helped=helped)
            self._put(connection, unit)
            return unit

    def units(self) -> list[ExperienceUnit]:
        with self._file.read() as connection:
            rows = connection.execute(
                "SELECT document FROM experiences WHERE principal = ?", (self._principal,)
            ).fetchall()
        kept = [ExperienceUnit.model_validate(json.loads(text)) for (text,) in rows]
        return sorted(kept, key=lambda unit: (unit.created_at, unit.id))

    def drop(self, unit_id: str) -> bool:
        with self._file.write() as connection:
            found = connection.execute(
                "DELETE FROM experiences WHERE principal = ? AND id = ?", (self._principal, unit_id)
            )
            return found.rowcount == 1

    def _put(self, connection: sqlite3.Connection, unit: ExperienceUnit) -> None:
        text = json.dumps(unit.model_dump(mode="json"), allow_nan=False)
        connection.execute(
            "INSERT INTO experiences (principal, id, expires_at, document) VALUES (?, ?, ?, ?)"
            " ON CONFLICT (principal, id) DO UPDATE SET document = excluded.document,"
            " expires_at = excluded.expires_at",
            (self._principal, unit.id, unit.expires_at, text),
        )
