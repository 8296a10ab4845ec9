"""The workers of a lane: one active, at most one candidate, and any that retire."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

GB = 1_000_000_000
SHORTEST_STOP_PATIENCE_S = 30.0
STOP_PATIENCE_PER_GB_S = 0.5


def stop_patience_s(configured_s: float | None, memory_bytes: int) -> float:
    """How long to wait after the stop signal. Tearing down a big model takes time, so patience grows with memory."""
    if configured_s is not None:
        return configured_s
    return SHORTEST_STOP_PATIENCE_S + STOP_PATIENCE_PER_GB_S * memory_bytes / GB


@dataclass
class Worker:
    """What a lane knows of one worker. Times are the daemon's monotonic seconds."""

    generation: int
    begun_at: float
    """When its start was decided."""
    pid: int | None = None
    port: int | None = None
    spawned_at: float | None = None
    ready_at: float | None = None
    stop_sent_at: float | None = None
    memory_bytes: int = 0
    requests: int = 0
    generated_tokens: int = 0
    is_empty: bool = False
    """Of a retiring worker: its last request has ended."""

    def uptime_s(self, at: float) -> float:
        """Seconds since its process began; 0 before."""
        return 0.0 if self.spawned_at is None else at - self.spawned_at

    @property
    def is_awaited(self) -> bool:
        """Whether it was started, or found, and is neither ready nor told to stop."""
        return self.spawned_at is not None and self.ready_at is None and self.stop_sent_at is None

    def stop_patience_s(self, configured_s: float | None) -> float:
        """How long to wait after the stop signal."""
        return stop_patience_s(configured_s, self.memory_bytes)


class Role(StrEnum):
    """What a generation is to its lane right now."""

    ACTIVE = "active"
    CANDIDATE = "candidate"
    RETIRING = "retiring"
    GONE = "gone"


@dataclass
class Workers:
    """Generations count on over the lane's life, so a late event of a dead worker can never be mistaken."""

    active: Worker | None = None
    candidate: Worker | None = None
    retiring: dict[int, Worker] = field(default_factory=dict)
    last_generation: int = 0
    peak_memory_bytes: int = 0

    def begin(self, at: float) -> Worker:
        """A new worker, of the next generation; the caller gives it its role."""
        self.last_generation += 1
        return Worker(self.last_generation, at)

    def role(self, generation: int) -> Role:
        """Which role ``generation`` plays now."""
        if self.active and self.active.generation == generation:
            return Role.ACTIVE
        if self.candidate and self.candidate.generation == generation:
            return Role.CANDIDATE
        return Role.RETIRING if generation in self.retiring else Role.GONE

    def find(self, generation: int) -> Worker | None:
        """The worker of this generation, whatever its role."""
        match self.role(generation):
            case Role.ACTIVE:
                return self.active
            case Role.CANDIDATE:
                return self.candidate
            case _:
                return self.retiring.get(generation)

    def promote(self) -> None:
        """The candidate becomes the active worker; the active one, if any, retires."""
        if self.active:
            self.retiring[self.active.generation] = self.active
        self.active, self.candidate = self.candidate, None

    def discard_candidate(self) -> Worker | None:
        """The candidate retires without ever having served."""
        discarded, self.candidate = self.candidate, None
        if discarded:
            discarded.is_empty = True
            self.retiring[discarded.generation] = discarded
        return discarded
