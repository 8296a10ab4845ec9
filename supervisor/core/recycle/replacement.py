"""One recycle from its first thought to its record: the small machine inside a lane's life.

It walks down ``Step``. In place the old worker goes first: waiting, draining, stopping, starting, verifying. With
overlap the new one comes first: waiting, starting, proving, retiring. What it may do to clients depends on what set
it off: only a hang, a crash, hard memory or a person's ``--now`` may cut a stream; mere slowness never does.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from statistics import median

from supervisor.core.account.record import (
    AfterSpeed,
    BeforeSpeed,
    Cause,
    DrainFacts,
    OldWorker,
    Outcome,
    RecycleRecord,
    RemedyFacts,
    StopFacts,
)
from supervisor.core.samples import Verdict
from supervisor.core.terms import Replace, Trigger
from supervisor.core.workers import Worker

CUTS = frozenset({Trigger.HUNG, Trigger.CRASHED, Trigger.MEMORY})
"""Triggers whose worker cannot be waited for."""

FOR_SLOWNESS = frozenset({Trigger.DEGRADED, Trigger.AGE, Trigger.BAD_SPAWN})
"""Triggers whose success is a matter of speed, and is verified."""

VERIFY_RUNS = 5
"""Clean runs that tell a cure from a futile recycle."""

PROOF_VOID_LIMIT = 3
"""So many disturbed proofs, and the candidate gives way to an in-place recycle."""


class Step(StrEnum):
    """How far a replacement has come."""

    WAITING_SLOT = "waiting_slot"
    WAITING_IDLE = "waiting_idle"
    LOOKING = "looking"
    DRAINING = "draining"
    STOPPING = "stopping"
    STARTING = "starting"
    PROVING = "proving"
    VERIFYING = "verifying"
    RETIRING = "retiring"


@dataclass
class Replacement:
    """A recycle under way."""

    lane: str
    trigger: Trigger
    reason: str
    begun_at: float
    replace: Replace
    is_now: bool = False
    step: Step = Step.WAITING_SLOT
    has_slot: bool = False
    before: Verdict | None = None
    baseline_tok_s: float | None = None
    """What fresh means, at the smallest prompt size."""
    cause: Cause = field(default_factory=Cause)
    remedies: tuple[RemedyFacts, ...] = ()
    """What was tried on the old worker before."""
    old: OldWorker = field(default_factory=OldWorker)
    closed_at: float | None = None
    """When the gate began to hold."""
    unserved_at: float | None = None
    """When the old worker no longer served: it was told to stop, hung or died."""
    stop_sent_at: float | None = None
    exited_at: float | None = None
    opened_at: float | None = None
    ended_at: float | None = None
    """When its outcome was known."""
    is_killed: bool = False
    smallest: int = 0
    """The smallest prompt size: the one of the record's scalars."""
    rates_by_size: dict[int, list[float]] = field(default_factory=dict)
    """Decode rates of the new worker."""
    proof_voids: int = 0
    looks: int = 0
    """Clean runs of the last look."""
    look_voids: int = 0

    @property
    def rates(self) -> list[float]:
        """Decode rates of the new worker at the smallest size."""
        return self.rates_by_size.setdefault(self.smallest, [])

    @property
    def sizes(self) -> tuple[int, ...]:
        """Prompt sizes at which the new worker has to prove itself: the smallest, and the one that was convicted."""
        convicted = self.before.prompt_tokens if self.before and self.is_for_slowness else None
        return (self.smallest,) if convicted in (None, self.smallest) else (self.smallest, convicted)

    @property
    def model(self) -> str:
        """The further model that was convicted and has to prove itself, as a key of `serves`; empty: the own one."""
        return self.before.model if self.before and self.is_for_slowness else ""

    def next_size(self) -> int | None:
        """The size of the next run; None once enough are in."""
        size = min(self.sizes, key=lambda each: len(self.rates_by_size.get(each, [])))
        return None if len(self.rates_by_size.get(size, [])) >= self.runs_wanted else size

    def took(self, size: int, rate: float) -> None:
        """One clean run of the new worker."""
        self.rates_by_size.setdefault(size, []).append(rate)

    @property
    def may_cut(self) -> bool:
        """Whether streams in flight may be ended for it."""
        return self.is_now or self.trigger in CUTS

    @property
    def is_for_slowness(self) -> bool:
        """Whether only a faster worker makes it a success."""
        return self.trigger in FOR_SLOWNESS

    @property
    def runs_wanted(self) -> int:
        """Clean runs of the new worker, at each of its ``sizes``, before its gate opens."""
        return VERIFY_RUNS if self.is_for_slowness else 1

    def remember(self, worker: Worker, at: float) -> None:
        """Keep what the record says of the old worker."""
        self.old = OldWorker(
            worker.pid,
            worker.generation,
            worker.uptime_s(at),
            worker.requests,
            worker.generated_tokens,
            worker.memory_bytes,
        )

    def record(self, outcome: Outcome | None, following: str = "") -> RecycleRecord:
        """The record as far as the core knows it; ``outcome`` None makes it an intent."""
        return RecycleRecord(
            lane=self.lane,
            trigger=self.trigger,
            reason=self.reason,
            cause=self.cause,
            before=self._before(),
            worker=self.old,
            drain=DrainFacts(waited_s=_between(self.closed_at, self.unserved_at) or 0.0),
            stop=StopFacts(took_s=_between(self.stop_sent_at, self.exited_at), killed=self.is_killed),
            remedies=self.remedies,
            replace=self.replace,
            downtime_s=self._downtime_s(),
            after=self._after(),
            outcome=outcome,
            next=following,
        )

    def _downtime_s(self) -> float:
        """Where no new worker came, up to the moment at which that was known."""
        served_at = self.ended_at if self.opened_at is None else self.opened_at
        return 0.0 if self.replace is Replace.OVERLAP else _between(self.unserved_at, served_at) or 0.0

    def _before(self) -> BeforeSpeed:
        verdict = self.before
        if verdict is None:
            return BeforeSpeed()
        return BeforeSpeed(
            verdict.decode_tok_s,
            verdict.baseline_tok_s,
            verdict.ratio,
            verdict.interval,
            verdict.confidence,
            {str(size): rate for size, rate in verdict.by_prompt_tokens},
            verdict.samples,
            verdict.model,
        )

    def _after(self) -> AfterSpeed:
        if not self.rates:
            return AfterSpeed()
        middle, fresh = median(self.rates), self.baseline_tok_s
        return AfterSpeed(middle, middle / fresh if fresh else None, tuple(self.rates))


def _between(begin: float | None, end: float | None) -> float | None:
    return None if begin is None or end is None else max(end - begin, 0.0)
