"""The recycle log as the daemon uses it: it survives a full or vanished disk, and never blocks the loop."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import structlog

from supervisor.core.account.record import Outcome, RecycleRecord
from supervisor.journal.intents import Intents
from supervisor.journal.recycle_log import append_line, read_newest
from supervisor.writer import Writer, WriterFullError

log = structlog.get_logger(__name__)

T = TypeVar("T")

WRITE_TIMEOUT_S = 10.0
"""How long a lane waits for its intent or record to be durable before it goes on without."""
RETRY_S = 15.0
MOST_UNSAVED = 1000
LOOK_BACK_FOR_ABORTED = 100
ENDED_TOO_EARLY = "the daemon ended before the outcome was known; a new worker is started"


class Journal:
    """Writes intents and records; reads records back.

    A write that fails is no error to the caller: supervision goes on, the record is kept in memory and tried
    again every ``retry_s`` seconds and before each later append, and ``trouble`` says so until it has worked.
    """

    def __init__(self, state_dir: Path, *, retry_s: float = RETRY_S) -> None:
        self.path = state_dir / "recycle.jsonl"
        self._intents = Intents(state_dir / "recycling")
        self._writer = Writer("freshlane-journal", room=MOST_UNSAVED)
        self._unsaved: deque[dict[str, Any]] = deque(maxlen=MOST_UNSAVED)
        self._retry_s = retry_s
        self._retry: asyncio.TimerHandle | None = None
        self._trouble: str | None = None
        self._is_closing = False

    @property
    def trouble(self) -> str | None:
        """Why the log cannot be written now, for a person to read; None when all is well."""
        return self._trouble

    @property
    def unsaved(self) -> int:
        """How many records wait in memory."""
        return len(self._unsaved)

    async def open(self) -> list[dict[str, Any]]:
        """Turn the intents of an earlier daemon into records with outcome ``aborted``, and return these."""
        aborted = await self._run(self._abort_unfinished)
        self._arm_retry()
        return aborted or []

    async def write_intent(self, record: RecycleRecord) -> None:
        """Make durable that a recycle is under way. Call it before the worker is stopped."""
        document = record.to_json()
        await self._run(lambda: self._write_intent(document))

    async def append(self, record: RecycleRecord) -> None:
        """Append the record of a finished recycle, and drop its intent (the one with the record's id)."""
        self._unsaved.append(record.to_json())
        await self._run(self._flush)
        self._arm_retry()

    async def records(self, lane: str | None = None, limit: int = 100) -> list[dict[str, Any]]:
        """The newest ``limit`` records, of one lane or of all, newest last, with those still in memory."""
        return await asyncio.to_thread(self._read, lane, limit)

    async def close(self) -> None:
        """Try once more what is unsaved, and end. What stays unsaved has its intent on disk."""
        self._is_closing = True
        if self._retry is not None:
            self._retry.cancel()
        await self._run(self._flush)
        await self._writer.close(WRITE_TIMEOUT_S)
        if self._unsaved:
            log.error("recycle_records_unsaved", records=list(self._unsaved))

    async def _run(self, job: Callable[[], T]) -> T | None:
        try:
            return await self._writer.run(job, WRITE_TIMEOUT_S)
        except TimeoutError:
            self._say(f"{self.path}: the disk has not answered for {WRITE_TIMEOUT_S:.0f} s; the lanes go on without")
        except WriterFullError as error:
            self._say(str(error))
        return None

    def _arm_retry(self) -> None:
        if self._unsaved and self._retry is None and not self._is_closing:
            self._retry = asyncio.get_running_loop().call_later(self._retry_s, self._retry_now)

    def _retry_now(self) -> None:
        self._retry = None
        try:
            self._writer.offer(self._flush)
        except WriterFullError as error:
            self._say(str(error))
        self._arm_retry()

    # ---- on the writer's thread ----

    def _abort_unfinished(self) -> list[dict[str, Any]]:
        aborted = []
        try:
            for intent in self._intents.found():
                if self._is_in_log(intent):
                    self._intents.drop(intent["lane"], intent["id"])
                else:
                    aborted.append(intent | {"outcome": Outcome.ABORTED.value, "next": ENDED_TOO_EARLY})
        except OSError as error:
            self._say(f"{self.path.parent} cannot be read: {error}")
        self._unsaved.extend(aborted)
        self._flush()
        return aborted

    def _is_in_log(self, intent: Mapping[str, Any]) -> bool:
        """Whether the daemon ended between the record and the intent's removal."""
        records = self._read(intent["lane"], LOOK_BACK_FOR_ABORTED)
        return any(record.get("id") == intent["id"] for record in records)

    def _write_intent(self, document: Mapping[str, Any]) -> None:
        try:
            self._intents.write(document)
        except OSError as error:
            self._say(f"the intent to recycle {document['lane']} cannot be written: {error}; the recycle goes on")

    def _flush(self) -> None:
        while self._unsaved:
            record = self._unsaved[0]
            try:
                append_line(self.path, record)
            except OSError as error:
                self._say(f"{self.path} cannot be written: {error}; its new records wait in memory")
                return
            if self._unsaved and self._unsaved[0] is record:
                self._unsaved.popleft()
            self._drop_intent(record)
        self._trouble = None

    def _drop_intent(self, record: Mapping[str, Any]) -> None:
        try:
            self._intents.drop(record["lane"], record["id"])
        except OSError as error:
            log.warning("intent_stays", lane=record["lane"], error=str(error), remedy="the next start removes it")

    # ---- on any thread ----

    def _read(self, lane: str | None, limit: int) -> list[dict[str, Any]]:
        unsaved = [record for record in tuple(self._unsaved) if lane in (None, record["lane"])]
        try:
            saved = read_newest(self.path, limit, lambda record: lane in (None, record.get("lane")))
        except OSError as error:
            self._say(f"{self.path} cannot be read: {error}")
            saved = []
        ids = {record["id"] for record in unsaved}
        merged = [record for record in saved if record.get("id") not in ids] + unsaved
        return merged[-limit:] if limit > 0 else []

    def _say(self, trouble: str) -> None:
        if self._trouble is None:
            log.error("journal_in_trouble", trouble=trouble)
        self._trouble = trouble
