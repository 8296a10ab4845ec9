"""The papers of one lane's recycles: the tally while one runs, the intent before the stop, the record at the end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import structlog

from supervisor.core.account.record import RecycleRecord
from supervisor.core.recycle.replacement import Replacement
from supervisor.settings import LaneSettings
from supervisor.shell.front.gate import Gate
from supervisor.shell.lane.recycle_totals import RecycleTotals
from supervisor.shell.lane.surroundings import Surroundings
from supervisor.shell.lane.tally import GateCounts, RecycleTally
from supervisor.shell.machine.clock import rfc3339

log = structlog.get_logger(__name__)


class RecycleDesk:
    """``written`` takes each finished record's document."""

    def __init__(
        self, settings: LaneSettings, gate: Gate, around: Surroundings, written: Callable[[dict[str, Any]], None]
    ) -> None:
        self.settings = settings
        self.totals = RecycleTotals()
        self._gate = gate
        self._around = around
        self._written = written
        self.on_complete: Callable[[int], None] = lambda _: None
        """Takes the tokens of a prefix cache that the old worker saved and the new one did not get."""
        self._tally: RecycleTally | None = None

    def look(self, under_way: Replacement | None) -> None:
        """Open a tally as soon as a recycle is under way."""
        if under_way and self._tally is None:
            self._tally = self._new_tally(under_way.old.generation)

    # ---- what happens on the way ----

    def gate_closes(self, generation: int | None) -> None:
        """The gate is about to hold."""
        if self._tally:
            self._tally.inflight = max(self._tally.inflight, self._gate.inflight(generation))

    def gate_opens(self) -> None:
        """The gate is about to open."""
        if self._tally:
            self._tally.held = self._gate.queued

    def worker_stops(self) -> None:
        """The old worker is about to be told to stop."""
        if self._tally and self._tally.memory_before is None:
            self._tally.memory_before = self._available()

    def worker_gone(self) -> None:
        """The old worker's process ended."""
        if self._tally and self._tally.memory_after_exit is None:
            self._tally.memory_after_exit = self._available()

    def worker_ready(self) -> None:
        """The new worker is up."""
        if self._tally:
            self._tally.memory_after_start = self._available()

    def prefix_saved(self, tokens: int, took_s: float) -> None:
        """The old worker had its time to save its prefix cache."""
        if self._tally:
            self._tally.saved_tokens, self._tally.saving_s = tokens, took_s

    def prefix_restored(self, tokens: int) -> None:
        """The new worker took in what the old one saved."""
        if self._tally:
            self._tally.restored_tokens = tokens

    # ---- the papers ----

    async def write_intent(self, record: RecycleRecord) -> None:
        """Durable when this returns, unless the disk is in trouble; the journal says so then, and goes on."""
        await self._around.journal.write_intent(self._complete(record))

    async def write_record(self, record: RecycleRecord) -> None:
        """Append the record and close the tally."""
        complete = self._complete(record)
        self._tally = None
        await self._around.journal.append(complete)
        document = complete.to_json()
        self.totals.add(document)
        self._written(document)
        if complete.prefix_cache.saved_tokens:
            prefix = complete.prefix_cache
            self.on_complete(max(prefix.saved_tokens - prefix.restored_tokens, 0))

    def _complete(self, record: RecycleRecord) -> RecycleRecord:
        tally = self._tally = self._tally or self._new_tally(record.worker.generation)
        wall = self._around.clock.wall()
        return tally.complete(record, time=rfc3339(wall), signal=self.settings.stop_signal, now=self._counts())

    def _new_tally(self, old: int) -> RecycleTally:
        """What has just failed with the old worker belongs to it: a crash is heard of later than its streams break."""
        wall, counts = rfc3339(self._around.clock.wall()), self._counts()
        begun = replace(counts, failed=counts.failed - self._gate.failed_with(old))
        return RecycleTally(f"{self.settings.name}-{wall}", begun)

    def _counts(self) -> GateCounts:
        totals = self._gate.totals
        return GateCounts(totals.held, totals.failed, totals.replayed, totals.cut)

    def _available(self) -> int:
        return self._around.host.memory_available_bytes()
