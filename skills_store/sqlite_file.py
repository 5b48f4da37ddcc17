"""One SQLite file of the store: opening it, refusing what is not ours, and the one way to write.

sqlite-utils' own `atomic()` begins deferred, and a deferred transaction that reads and then
writes fails at once when another process writes too; no busy timeout helps. So every write goes
through `SqliteFile.write`, which takes the write lock first. What the tables mean is `sqlite`.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from threading import RLock

from skills_store.errors import StoreUnusable
from skills_store.migrations import APPLICATION_ID, SCHEMA_VERSION, apply_migrations

__all__ = ["BUSY_TIMEOUT_SECONDS", "SqliteFile", "open_sqlite_file"]

BUSY_TIMEOUT_SECONDS = 10.0

_PAUSE_SECONDS = 0.01


def open_sqlite_file(path: Path) -> SqliteFile:
    """Open a store's file, creating it and its folder, readable by its owner only.

    Raises:
        StoreUnusable: it is corrupt, another program's, from a newer version, or cannot be
            opened; it was not written to.
    """
    with _naming(path):
        _check_usable(path)
        _create(path)
        connection = _connect(path)
        try:
            connection.execute("PRAGMA foreign_keys = ON")
            _enable_log(connection)
            file = SqliteFile(path, connection)
            with file.write() as transaction:
                apply_migrations(transaction)
        except BaseException:
            connection.close()
            raise
        return file


class SqliteFile:
    """An open file of the store. Calls from several threads take turns."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self._path = path
        self._connection = connection
        self._lock = RLock()
        self._is_closed = False
        self._is_durable: bool | None = None
        """How the connection commits now, None until it is said."""

    @contextmanager
    def write(self, *, durable: bool = True) -> Generator[sqlite3.Connection]:
        """Hold the write lock for one transaction: committed at the end, undone on any exception.

        Args:
            durable: whether the commit must outlive a power cut (FULL) and not only a killed
                process (NORMAL). FULL costs a flush to disk.

        Raises:
            StoreUnusable: the lock was not free in time, or the file is broken.
        """
        with self._turn() as connection:
            if durable is not self._is_durable:
                connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
                self._is_durable = durable
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    @contextmanager
    def read(self) -> Generator[sqlite3.Connection]:
        """Hold the connection for reading; every statement sees what is committed by then.

        Raises:
            StoreUnusable: the file is broken.
        """
        with self._turn() as connection:
            yield connection

    def close(self) -> None:
        """Close the file. Closing twice is allowed."""
        with self._lock:
            self._is_closed = True
            self._connection.close()

    @contextmanager
    def _turn(self) -> Generator[sqlite3.Connection]:
        with self._lock, _naming(self._path):
            if self._is_closed:
                raise RuntimeError("the store is closed")
            yield self._connection


@contextmanager
def _naming(path: Path) -> Generator[None]:
    try:
        yield
    except (sqlite3.IntegrityError, sqlite3.ProgrammingError):
        raise
    except sqlite3.DatabaseError as error:
        if _is_busy(error):
            raise StoreUnusable(
                f"{path} is in use: another process kept it locked for {BUSY_TIMEOUT_SECONDS:g} s"
            ) from error
        raise StoreUnusable(f"{path} cannot be used as a store: {error}") from error
    except OSError as error:
        raise StoreUnusable(f"{path} cannot be used as a store: {error.strerror or error}") from error


def _check_usable(path: Path) -> None:
    """Look into the file without being able to write to it, or to leave files beside it."""
    if not path.exists() or (path.is_file() and path.stat().st_size == 0):
        return
    is_in_use = path.with_name(f"{path.name}-wal").exists()
    connection = _connect(path, "mode=ro" if is_in_use else "mode=ro&immutable=1")
    try:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    finally:
        connection.close()
    if version > SCHEMA_VERSION:
        raise StoreUnusable(
            f"{path} was written by a newer skillbank (schema {version}, this one knows"
            f" {SCHEMA_VERSION}); upgrade"
        )
    if application != APPLICATION_ID and tables:
        raise StoreUnusable(f"{path} is a SQLite file of another program")


def _create(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))


def _enable_log(connection: sqlite3.Connection) -> None:
    """Switch to write-ahead logging, which readers and one writer share.

    Processes that open a new file at once exclude each other here, and SQLite does not wait for
    its busy timeout then: waiting is done in this place.
    """
    deadline = time.monotonic() + BUSY_TIMEOUT_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if not _is_busy(error) or time.monotonic() > deadline:
                raise
            time.sleep(_PAUSE_SECONDS)
        else:
            return


def _is_busy(error: sqlite3.DatabaseError) -> bool:
    primary_code = error.sqlite_errorcode & 0xFF
    return primary_code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _connect(path: Path, options: str = "mode=rw") -> sqlite3.Connection:
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?{options}",
        uri=True,
        timeout=BUSY_TIMEOUT_SECONDS,
        isolation_level=None,
        check_same_thread=False,
    )
