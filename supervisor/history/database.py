"""The SQLite file under the history, used by one thread alone.

A file that is broken is set aside and a new one made; where none can be made, memory stands in and ``trouble`` says so.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import structlog

log = structlog.get_logger(__name__)

SCHEMA = """
CREATE TABLE IF NOT EXISTS samples (lane TEXT NOT NULL, wall REAL NOT NULL, document TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS samples_by_time ON samples (lane, wall);
CREATE TABLE IF NOT EXISTS changes (lane TEXT NOT NULL, wall REAL NOT NULL, document TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS changes_by_time ON changes (lane, wall);
CREATE TABLE IF NOT EXISTS baselines (
    lane TEXT NOT NULL, fingerprint TEXT NOT NULL, wall REAL NOT NULL, document TEXT NOT NULL,
    PRIMARY KEY (lane, fingerprint)
);
CREATE TABLE IF NOT EXISTS documents (
    lane TEXT NOT NULL, key TEXT NOT NULL, wall REAL NOT NULL, document TEXT NOT NULL,
    PRIMARY KEY (lane, key)
);
"""

BROKEN = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
MOST_UNSAVED = 1000
PRIVATE_FILE = 0o600

Parameters = tuple[Any, ...]


class Database:
    """Opened, used and closed on one thread. Nothing here raises for a disk that is full, read-only or broken."""

    def __init__(self, path: Path, retry_s: float) -> None:
        self._path = path
        self._retry_s = retry_s
        self._retry_at = 0.0
        self._unsaved: deque[tuple[str, Parameters]] = deque(maxlen=MOST_UNSAVED)
        self._inode: int | None = None
        self.trouble: str | None = None
        self._connection = self._opened()

    def write(self, statement: str, parameters: Parameters) -> None:
        """Run one statement, after those that had to wait; if it cannot be done now it waits as well."""
        self._unsaved.append((statement, parameters))
        if self._inode is None:
            self._write_to_memory([(statement, parameters)])
            self._return_to_disk()
        elif self._inode != _inode_of(self._path):
            log.warning("history_gone", path=str(self._path), remedy="a new one is made")
            self._reopen()
        if self._inode is not None:
            self._write_unsaved()

    def read(self, query: str, parameters: Parameters) -> list[tuple[Any, ...]]:
        """The rows of a query; none if the file cannot be read."""
        try:
            return self._connection.execute(query, parameters).fetchall()
        except sqlite3.DatabaseError as error:
            if _is_broken(error):
                self._set_aside(error)
                self._reopen()
            else:
                self._say(f"{self._path} cannot be read: {error}")
            return []

    def close(self) -> None:
        self._connection.close()

    def _write_unsaved(self) -> None:
        try:
            self._run_unsaved()
        except sqlite3.DatabaseError as error:
            if not _is_broken(error):
                self._say(f"{self._path} cannot be written: {error}; what is new waits in memory")
                return
            self._set_aside(error)
            self._reopen()
            if self._inode is not None:
                self._write_to_new_file()

    def _write_to_new_file(self) -> None:
        try:
            self._run_unsaved()
        except sqlite3.DatabaseError as error:
            self._say(f"{self._path} cannot be written: {error}; what is new waits in memory")

    def _run_unsaved(self) -> None:
        with self._connection:
            for statement, parameters in self._unsaved:
                self._connection.execute(statement, parameters)
        self._unsaved.clear()
        self.trouble = None

    def _write_to_memory(self, statements: Iterable[tuple[str, Parameters]]) -> None:
        """So that reads see it; the statements stay unsaved until there is a file."""
        with self._connection:
            for statement, parameters in statements:
                self._connection.execute(statement, parameters)

    def _return_to_disk(self) -> None:
        """From memory, once in a while, if the file can be used again."""
        if time.monotonic() < self._retry_at:
            return
        self._retry_at = time.monotonic() + self._retry_s
        try:
            connection = self._on_disk()
        except (OSError, sqlite3.DatabaseError):
            return
        self._connection.close()
        self._connection = connection

    def _opened(self) -> sqlite3.Connection:
        try:
            return self._on_disk()
        except sqlite3.DatabaseError as error:
            if not _is_broken(error):
                return self._in_memory(error)
            self._set_aside(error)
        except OSError as error:
            return self._in_memory(error)
        try:
            return self._on_disk()
        except (OSError, sqlite3.DatabaseError) as error:
            return self._in_memory(error)

    def _reopen(self) -> None:
        self._connection.close()
        self._connection = self._opened()

    def _on_disk(self) -> sqlite3.Connection:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE_FILE))
        connection = sqlite3.connect(self._path, timeout=5.0)
        try:
            _prepare(connection)
        except sqlite3.DatabaseError:
            connection.close()
            raise
        self._inode = _inode_of(self._path)
        return connection

    def _in_memory(self, error: Exception) -> sqlite3.Connection:
        self._say(f"{self._path} cannot be used: {error}; history is kept in memory until it can")
        self._inode = None
        self._retry_at = time.monotonic() + self._retry_s
        connection = sqlite3.connect(":memory:")
        with contextlib.suppress(sqlite3.DatabaseError), contextlib.closing(_read_only(self._path)) as old:
            old.backup(connection)
        connection.executescript(SCHEMA)
        with connection:
            for statement, parameters in self._unsaved:
                connection.execute(statement, parameters)
        return connection

    def _set_aside(self, error: Exception) -> None:
        aside = self._path.with_name(self._path.name + ".broken")
        log.error(
            "history_broken", path=str(self._path), error=str(error), kept_as=str(aside), remedy="a new one is made"
        )
        with contextlib.suppress(OSError):
            for beside in _files_beside(self._path):
                beside.unlink(missing_ok=True)
            self._path.replace(aside)

    def _say(self, trouble: str) -> None:
        if self.trouble is None:
            log.error("history_in_trouble", trouble=trouble)
        self.trouble = trouble


def _prepare(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA fullfsync = ON")
    connection.execute("PRAGMA journal_size_limit = 4194304")
    connection.executescript(SCHEMA)
    [(finding,), *_] = connection.execute("PRAGMA quick_check(1)")
    if finding != "ok":
        error = sqlite3.DatabaseError(finding)
        error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
        raise error
    with connection:
        connection.execute("PRAGMA user_version = 1")


def _read_only(path: Path) -> sqlite3.Connection:
    """A look at a file in a folder where SQLite may not put its own files beside it."""
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)


def _is_broken(error: sqlite3.DatabaseError) -> bool:
    return (getattr(error, "sqlite_errorcode", 0) & 0xFF) in BROKEN


def _files_beside(path: Path) -> Iterable[Path]:
    return (path.with_name(path.name + suffix) for suffix in ("-wal", "-shm"))


def _inode_of(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except OSError:
        return None
