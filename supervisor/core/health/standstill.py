"""Whether a worker that is starting has come to a standstill.

A start gets all of ``start_timeout``, however slow it is. But one that shows no sign of work at all must not keep other
lanes from starting for so long: it gives up its place in ``fleet.max_starting``, and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass

WORKING_CORES = 0.05
"""CPU time at this rate is work: to load from a slow disk takes little, to sleep and look takes less."""

GROWTH_BYTES = 1_000_000
"""A process tree that has grown by this much has loaded something."""


@dataclass(frozen=True, slots=True)
class StartReading:
    """One look at a starting worker. ``at``: monotonic seconds; the rest is of its process tree, since it began."""

    at: float
    cpu_s: float
    memory_bytes: int
    printed_bytes: int


class Standstill:
    """Watches one start. ``patience_s``: how long it may show nothing; may be set anew at any time."""

    def __init__(self, patience_s: float, begun: StartReading) -> None:
        self.patience_s = patience_s
        self._before = begun
        self._moved_at = begun.at
        self._most_memory_bytes = begun.memory_bytes

    def look(self, now: StartReading, *, was_blind: bool = False) -> bool:
        """Take a reading; whether the start stands still. ``was_blind``: nothing is known of the time before it."""
        if was_blind or self._has_moved(now):
            self._moved_at = now.at
        self._before = now
        self._most_memory_bytes = max(self._most_memory_bytes, now.memory_bytes)
        return self.still_s >= self.patience_s

    @property
    def still_s(self) -> float:
        """Seconds without a sign of work, at the last look."""
        return self._before.at - self._moved_at

    def _has_moved(self, now: StartReading) -> bool:
        before = self._before
        worked_s = now.cpu_s - before.cpu_s
        return (
            worked_s > WORKING_CORES * (now.at - before.at)
            or now.printed_bytes > before.printed_bytes
            or now.memory_bytes >= self._most_memory_bytes + GROWTH_BYTES
        )
