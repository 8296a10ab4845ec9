"""Samples, state changes, baselines and the memory of each lane; never makes the loop wait for a disk."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

import structlog

from supervisor.core.samples import Sample
from supervisor.errors import FreshlaneError
from supervisor.history.age import Age
from supervisor.history.database import Database, Parameters
from supervisor.jsontext import decode, encode
from supervisor.writer import Writer, WriterFullError

log = structlog.get_logger(__name__)

T = TypeVar("T")

TIMEOUT_S = 10.0
PRUNED_EVERY_S = 3600.0
RETRIED_AFTER_S = 60.0
"""How long memory stands in for an unusable file before it is tried again."""
MOST_ROWS = 20_000
"""A query's longest answer: the newest rows."""
MOST_KEPT_ROWS = 2_000_000
"""Of a table, whatever their age."""
MOST_KEPT_BASELINES = 50
"""Of a lane: those that were changed last."""


class History:
    """Kept for ``keep_s`` seconds of the daemon's running time. ``wall`` is the Unix clock, ``now`` a monotonic one.

    Nothing raises for the disk's sake: a failed write waits in memory and is tried with the next one, and ``trouble``
    says so. A document is small JSON under a lane and a key: the judge's state, a person's wish, crash times.
    """

    def __init__(
        self,
        path: Path,
        *,
        keep_s: float,
        wall: Callable[[], float],
        now: Callable[[], float] = time.monotonic,
        retry_s: float = RETRIED_AFTER_S,
    ) -> None:
        self._path = path
        self._retry_s = retry_s
        self._keep_s = keep_s
        self._wall = wall
        self._now = now
        self._writer = Writer("freshlane-history")
        self._database: Database | None = None
        self._pruned_at = now()
        self._is_prune_due = False
        self._dropped = 0

    @property
    def trouble(self) -> str | None:
        """Why the history is not on disk now, for a person to read; None when all is well."""
        if self._dropped:
            return f"{self._path}: the disk is too slow; {self._dropped} entries were dropped"
        return self._database.trouble if self._database is not None else None

    async def open(self) -> None:
        """Open or make the file, and drop what is too old."""
        await self._run(self._open)

    def keep(self, keep_s: float) -> None:
        """A reload changed ``history.keep``."""
        self._keep_s = keep_s
        self._is_prune_due = True

    def add_sample(self, lane: str, sample: Sample) -> None:
        """Keep one canary run; returns at once."""
        self._offer("INSERT INTO samples VALUES (?, ?, ?)", (lane, sample.wall, encode(asdict(sample))))

    def add_change(self, lane: str, change: Mapping[str, Any]) -> None:
        """Keep one state change ({state, reason, ...}), stamped now; returns at once."""
        self._offer("INSERT INTO changes VALUES (?, ?, ?)", (lane, self._wall(), encode(change)))

    async def samples(self, lane: str | None = None, since: float = 0.0) -> list[dict[str, Any]]:
        """Canary runs from Unix time ``since`` on, oldest first: the fields of Sample, and the lane."""
        return await self._select("samples", lane, since)

    async def changes(self, lane: str | None = None, since: float = 0.0) -> list[dict[str, Any]]:
        """State changes from Unix time ``since`` on, oldest first: as added, with lane and wall."""
        return await self._select("changes", lane, since)

    async def save(self, lane: str, key: str, document: Mapping[str, Any]) -> None:
        """Keep a document over daemon restarts, in place of the one under that key."""
        await self._write("INSERT OR REPLACE INTO documents VALUES (?, ?, ?, ?)", self._row(lane, key, document))

    async def load(self, lane: str, key: str) -> dict[str, Any] | None:
        """The document under that key; None if there is none."""
        return await self._document("SELECT document FROM documents WHERE lane = ? AND key = ?", (lane, key))

    async def save_baseline(self, lane: str, fingerprint: str, document: Mapping[str, Any]) -> None:
        """Keep what fresh means for a lane under this fingerprint."""
        row = self._row(lane, fingerprint, document)
        await self._write("INSERT OR REPLACE INTO baselines VALUES (?, ?, ?, ?)", row)

    async def load_baseline(self, lane: str, fingerprint: str) -> dict[str, Any] | None:
        """What fresh means for a lane under this fingerprint; None if it was never measured."""
        query = "SELECT document FROM baselines WHERE lane = ? AND fingerprint = ?"
        return await self._document(query, (lane, fingerprint))

    async def baselines(self, lane: str) -> list[dict[str, Any]]:
        """The lane's baselines of all fingerprints: {fingerprint, wall, document}; ``wall`` of its last change."""
        query = "SELECT fingerprint, wall, document FROM baselines WHERE lane = ?"
        rows = await self._run(lambda: self._opened().read(query, (lane,)))
        return [
            {"fingerprint": fingerprint, "wall": wall, "document": decode(document) or {}}
            for fingerprint, wall, document in rows or []
        ]

    async def forget_baselines(self, lane: str) -> None:
        """Drop the lane's baselines of all fingerprints."""
        await self._write("DELETE FROM baselines WHERE lane = ?", (lane,))

    async def close(self) -> None:
        """Write what is queued, and end."""
        await self._run(self._close)
        await self._writer.close(TIMEOUT_S)

    def _row(self, lane: str, key: str, document: Mapping[str, Any]) -> Parameters:
        return lane, key, self._wall(), encode(document)

    def _offer(self, statement: str, parameters: Parameters) -> None:
        try:
            self._writer.offer(lambda: self._do_write(statement, parameters))
        except WriterFullError as error:
            if self._dropped == 0:
                _tell(str(error))
            self._dropped += 1
        else:
            self._dropped = 0

    async def _run(self, job: Callable[[], T]) -> T | None:
        try:
            return await self._writer.run(job, TIMEOUT_S)
        except (TimeoutError, WriterFullError) as error:
            _tell(f"the disk under {self._path} is too slow: {error!r}")
            return None

    async def _write(self, statement: str, parameters: Parameters) -> None:
        await self._run(lambda: self._do_write(statement, parameters))

    async def _document(self, query: str, parameters: Parameters) -> dict[str, Any] | None:
        rows = await self._run(lambda: self._opened().read(query, parameters))
        return decode(rows[0][0]) if rows else None

    async def _select(self, table: str, lane: str | None, since: float) -> list[dict[str, Any]]:
        query = SELECT_NEWEST[table]
        rows = await self._run(lambda: self._opened().read(query, (lane, lane, since, MOST_ROWS)))
        return [
            {**(decode(document) or {}), "lane": row_lane, "wall": wall} for row_lane, wall, document in rows or []
        ][::-1]

    # ---- on the writer's thread ----

    def _opened(self) -> Database:
        if self._database is None:
            raise FreshlaneError("the history is used before it was opened, or after it was closed")
        return self._database

    def _open(self) -> None:
        self._database = Database(self._path, self._retry_s)
        self._prune(self._database)

    def _do_write(self, statement: str, parameters: Parameters) -> None:
        database = self._opened()
        database.write(statement, parameters)
        if self._is_prune_due or self._now() - self._pruned_at > PRUNED_EVERY_S:
            self._prune(database)

    def _prune(self, database: Database) -> None:
        """Each table keeps its newest row: by its number the next ones are told to be newer."""
        now, keep_s = self._now(), self._keep_s
        newest = _newest_rows(database)
        kept = database.read(SELECT_AGE, ())
        age = Age.from_json(decode(kept[0][0]) or {} if kept else {})
        age.look(now - self._pruned_at, newest, keep_s)
        for table, statement in DROP_UP_TO.items():
            last = max(age.last_old(table, keep_s), newest[table] - MOST_KEPT_ROWS)
            database.write(statement, (min(last, newest[table] - 1),))
        database.write(DROP_BASELINES, (MOST_KEPT_BASELINES,))
        database.write(SAVE_AGE, (self._wall(), encode(age.to_json())))
        self._pruned_at, self._is_prune_due = now, False

    def _close(self) -> None:
        if self._database is not None:
            self._prune(self._database)
            self._database.close()
            self._database = None


def _newest_rows(database: Database) -> dict[str, int]:
    """By table; 0 where it is empty, or cannot be read."""
    found = {table: database.read(query, ()) for table, query in NEWEST_ROW.items()}
    return {table: rows[0][0] if rows else 0 for table, rows in found.items()}


def _tell(trouble: str) -> None:
    log.error("history_in_trouble", trouble=trouble)


SELECT_NEWEST = {
    "samples": "SELECT lane, wall, document FROM samples WHERE (? IS NULL OR lane = ?) AND wall >= ?"
    " ORDER BY wall DESC, rowid DESC LIMIT ?",
    "changes": "SELECT lane, wall, document FROM changes WHERE (? IS NULL OR lane = ?) AND wall >= ?"
    " ORDER BY wall DESC, rowid DESC LIMIT ?",
}
NEWEST_ROW = {
    "samples": "SELECT coalesce(max(rowid), 0) FROM samples",
    "changes": "SELECT coalesce(max(rowid), 0) FROM changes",
}
DROP_UP_TO = {
    "samples": "DELETE FROM samples WHERE rowid <= ?",
    "changes": "DELETE FROM changes WHERE rowid <= ?",
}
DROP_BASELINES = (
    "DELETE FROM baselines WHERE ? <= (SELECT count(*) FROM baselines AS later"
    " WHERE later.lane = baselines.lane AND later.rowid > baselines.rowid)"
)
# The age of the file is kept with the documents, as that of no lane.
SELECT_AGE = "SELECT document FROM documents WHERE lane = '' AND key = 'age'"
SAVE_AGE = "INSERT OR REPLACE INTO documents VALUES ('', 'age', ?, ?)"
