"""What only the shell can count while a recycle runs; it completes the record that the core wrote."""

from __future__ import annotations

from dataclasses import dataclass, replace

from supervisor.core.account.record import DrainFacts, MemoryFacts, PrefixFacts, RecycleRecord, RequestFacts, StopFacts


@dataclass(frozen=True, slots=True)
class GateCounts:
    """Totals of a lane's gate since the daemon began."""

    held: int = 0
    failed: int = 0
    replayed: int = 0
    cut: int = 0


@dataclass
class RecycleTally:
    """From the moment a recycle is under way until its record."""

    id: str
    begun: GateCounts
    inflight: int = 0
    """When the gate closed."""
    held: int = 0
    """When it opened again."""
    memory_before: int | None = None
    memory_after_exit: int | None = None
    memory_after_start: int | None = None
    saving_s: float = 0.0
    """How long the old worker saved its prefix cache, before its stop signal."""
    saved_tokens: int = 0
    restored_tokens: int = 0

    def complete(self, record: RecycleRecord, *, time: str, signal: str, now: GateCounts) -> RecycleRecord:
        """``record`` with id, time and counts; ``signal`` is what the worker was sent, if it was told to stop."""
        was_told = record.stop.took_s is not None
        took_s = max(0.0, record.stop.took_s - self.saving_s) if record.stop.took_s is not None else None
        return replace(
            record,
            id=self.id,
            time=time,
            drain=DrainFacts(self.inflight, record.drain.waited_s, self.held, now.cut - self.begun.cut),
            stop=StopFacts(signal if was_told else None, took_s, record.stop.killed),
            memory=MemoryFacts(self.memory_before, self.memory_after_exit, self.memory_after_start),
            prefix_cache=PrefixFacts(self.saved_tokens, self.restored_tokens),
            requests=RequestFacts(
                held=now.held - self.begun.held,
                failed=now.failed - self.begun.failed,
                replayed=now.replayed - self.begun.replayed,
            ),
        )
