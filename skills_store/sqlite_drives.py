"""`DriveStore` on the store's SQLite file: every statement is of one principal alone."""

from __future__ import annotations

from skills_store.drives import DRIVES_KEPT, KeptDrive, packed, unpacked
from skills_store.sqlite_file import SqliteFile

__all__ = ["SqliteDrives"]


class SqliteDrives:
    """The drives of one principal in an open file, which is the store's."""

    def __init__(self, file: SqliteFile, principal: str) -> None:
        self._file = file
        self._principal = principal

    def add(self, drive: KeptDrive) -> None:
        key = (self._principal, drive.id)
        with self._file.write() as connection:
            connection.execute("DELETE FROM drives WHERE principal = ? AND id = ?", key)
            connection.execute(
                "INSERT INTO drives (principal, id, at, content) VALUES (?, ?, ?, ?)",
                (*key, drive.at, packed(drive)),
            )
            connection.execute(
                "DELETE FROM drives WHERE principal = ? AND seq NOT IN"
                " (SELECT seq FROM drives WHERE principal = ? ORDER BY seq DESC LIMIT ?)",
                (self._principal, self._principal, DRIVES_KEPT),
            )

    def drives(self, limit: int) -> list[KeptDrive]:
        with self._file.read() as connection:
            rows = connection.execute(
                "SELECT content FROM drives WHERE principal = ? ORDER BY seq DESC LIMIT ?",
                (self._principal, limit),
            ).fetchall()
        return [unpacked(content) for (content,) in rows]

    def drop(self, before: float) -> int:
        with self._file.write() as connection:
            return connection.execute(
                "DELETE FROM drives WHERE principal = ? AND at < ?", (self._principal, before)
            ).rowcount
