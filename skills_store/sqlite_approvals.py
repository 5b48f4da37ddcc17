"""`ApprovalStore` on the store's SQLite file: every statement is of one principal alone."""

from __future__ import annotations

import json

from skills_store.approvals import Approval
from skills_store.sqlite_file import SqliteFile

__all__ = ["SqliteApprovals"]


class SqliteApprovals:
    """The approvals of one principal in an open file, which is the store's."""

    def __init__(self, file: SqliteFile, principal: str) -> None:
        self._file = file
        self._principal = principal

    def add(self, approval: Approval) -> None:
        text = json.dumps(approval.model_dump(mode="json"), allow_nan=False)
        with self._file.write() as connection:
            connection.execute(
                "INSERT INTO approvals (principal, id, document) VALUES (?, ?, ?)"
                " ON CONFLICT (principal, id) DO UPDATE SET document = excluded.document",
                (self._principal, approval.id, text),
            )

    def approvals(self) -> list[Approval]:
        with self._file.read() as connection:
            rows = connection.execute(
                "SELECT document FROM approvals WHERE principal = ?", (self._principal,)
            ).fetchall()
        kept = [Approval.model_validate(json.loads(text)) for (text,) in rows]
        return sorted(kept, key=lambda approval: (approval.tool, approval.id))

    def revoke(self, approval_id: str) -> bool:
        with self._file.write() as connection:
            return (
                connection.execute(
                    "DELETE FROM approvals WHERE principal = ? AND id = ?", (self._principal, approval_id)
                ).rowcount
                == 1
            )
