"""The record of one recycle: what drove it, what it did, what it brought. Its JSON is the recycle log's line."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from supervisor.core.terms import Replace, Trigger


class CauseKind(StrEnum):
    """Why the worker had to go. The words are fixed by the recycle log."""

    WORKER_AGED = "worker_aged"
    ACCEPTANCE = "acceptance"
    PREFILL = "prefill"
    MEMORY_PRESSURE = "memory_pressure"
    HOST_SLOW = "host_slow"
    CONTEXT = "context"
    BAD_SPAWN = "bad_spawn"
    HANG = "hang"
    CRASH = "crash"
    NONE = "none"
    UNKNOWN = "unknown"


class Outcome(StrEnum):
    """What a recycle came to."""

    CURED = "cured"
    PARTIAL = "partial"
    FUTILE = "futile"
    BAD_SPAWN = "bad_spawn"
    REPLACED = "replaced"
    ABORTED = "aborted"
    FAILED = "failed"


class Effect(StrEnum):
    """What a mild remedy came to."""

    CURED = "cured"
    PARTIAL = "partial"
    FUTILE = "futile"
    FAILED = "failed"
    """The worker could not apply it."""
    UNMEASURED = "unmeasured"
    """Clients left no quiet moment to measure it in."""


@dataclass(frozen=True, slots=True)
class Cause:
    """A kind, and the sentences with numbers that say so."""

    kind: CauseKind = CauseKind.UNKNOWN
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BeforeSpeed:
    """The old worker against a fresh one. Rates in tokens/s at the smallest prompt size."""

    decode_tok_s: float | None = None
    baseline_tok_s: float | None = None
    ratio: float | None = None
    interval: tuple[float, float] | None = None
    confidence: float | None = None
    by_prompt_tokens: dict[str, float] = field(default_factory=dict)
    samples: tuple[float, ...] = ()
    model: str = ""
    """The further model that was slow, as a key of `serves`; empty: the lane's own."""


@dataclass(frozen=True, slots=True)
class AfterSpeed:
    """The new worker against the baseline."""

    decode_tok_s: float | None = None
    ratio: float | None = None
    samples: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class RemedyFacts:
    """One remedy that was tried first. Rates in tokens/s at the prompt size that was convicted."""

    name: str
    decode_tok_s: float | None
    """After it."""
    before_tok_s: float
    ratio: float | None
    """After it, to a fresh worker."""
    took_s: float
    outcome: Effect


@dataclass(frozen=True, slots=True)
class OldWorker:
    pid: int | None = None
    generation: int = 0
    uptime_s: float = 0.0
    requests: int = 0
    generated_tokens: int = 0
    memory_bytes: int = 0


@dataclass(frozen=True, slots=True)
class DrainFacts:
    """``inflight``: when the gate closed. ``held``: when it opened again. ``cut``: ended by us."""

    inflight: int = 0
    waited_s: float = 0.0
    held: int = 0
    cut: int = 0


@dataclass(frozen=True, slots=True)
class StopFacts:
    signal: str | None = None
    took_s: float | None = None
    killed: bool = False


@dataclass(frozen=True, slots=True)
class MemoryFacts:
    """Bytes available on the host: before the stop, after the old worker's exit, and once the new one was ready."""

    before: int | None = None
    after_exit: int | None = None
    after_start: int | None = None


@dataclass(frozen=True, slots=True)
class RequestFacts:
    held: int = 0
    failed: int = 0
    replayed: int = 0


@dataclass(frozen=True, slots=True)
class PrefixFacts:
    saved_tokens: int = 0
    restored_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RecycleRecord:
    """One recycle. The core fills what it decided; the runner adds id, time and what only the shell can count."""

    id: str = ""
    time: str = ""
    """RFC 3339 with offset."""
    lane: str
    trigger: Trigger
    cause: Cause = Cause()
    reason: str = ""
    before: BeforeSpeed = BeforeSpeed()
    worker: OldWorker = OldWorker()
    drain: DrainFacts = DrainFacts()
    stop: StopFacts = StopFacts()
    memory: MemoryFacts = MemoryFacts()
    remedies: tuple[RemedyFacts, ...] = ()
    replace: Replace = Replace.IN_PLACE
    downtime_s: float = 0.0
    """From the moment the old worker no longer served to the gate's opening on the new one; 0 when overlapped."""
    requests: RequestFacts = RequestFacts()
    prefix_cache: PrefixFacts = PrefixFacts()
    after: AfterSpeed = AfterSpeed()
    outcome: Outcome | None = None
    """None while it is only an intent."""
    next: str = ""

    def to_json(self) -> dict[str, Any]:
        """The line of the recycle log, as plain JSON values."""
        return asdict(self)
