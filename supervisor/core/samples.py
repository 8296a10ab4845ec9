"""What a canary run brings back, and what a judge makes of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum


class Purpose(StrEnum):
    """Why a canary was sent."""

    ROUTINE = "routine"
    BURST = "burst"
    """Back-to-back runs that confirm or lift a suspicion."""
    VERIFY = "verify"
    """Runs of a new worker before its gate opens."""
    PROOF = "proof"
    """Runs of a candidate beside the active worker."""
    REMEDY = "remedy"
    """Runs that tell what a mild remedy brought."""
    ASKED = "asked"
    """A person asked."""


class Void(StrEnum):
    """Why a run counts neither for nor against the worker."""

    CLIENT_ARRIVED = "client_arrived"
    LANE_BUSY = "lane_busy"
    DEVICE_BUSY = "device_busy"
    LOOP_LAG = "loop_lag"
    CLOCK_GAP = "clock_gap"
    HOST_SLOW = "host_slow"
    TOO_FEW_TOKENS = "too_few_tokens"
    NO_TOKENS = "no_tokens"
    UNMEASURABLE = "unmeasurable"
    """No `usage`, and chunks that are not tokens: no rate can be told from outside."""
    FAILED = "failed"
    """The worker answered with an error."""
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Sample:
    """One canary run.

    ``decode_tok_s`` is tokens per second after the first token, seen from outside; it is a number exactly when
    ``void`` is None. Times are seconds; ``at`` is the daemon's monotonic clock, ``wall`` the Unix time for people
    and history.
    """

    at: float
    wall: float
    generation: int
    prompt_tokens: int
    """The size that was asked for (one of ``canary.prompt_tokens``), not what the tokenizer made of it."""
    purpose: Purpose
    decode_tok_s: float | None = None
    void: Void | None = None
    detail: str = ""
    tokens: int = 0
    measured_prompt_tokens: int | None = None
    cached_tokens: int | None = None
    ttft_s: float | None = None
    took_s: float = 0.0
    prefill_tok_s: float | None = None
    """Only of a run with a nonce, and only where the time to first token was long enough to mean something."""
    is_warmup: bool = False
    has_nonce: bool = False
    """Whether no cache could have served its prompt."""
    worker_age_s: float = 0.0
    worker_requests: int = 0
    tokens_per_step: float | None = None
    """Where the worker speculates and tells: what a step gave."""
    plain_tok_s: float | None = None
    """Of a run with speculation off, right after this one: as fast as ever, if only what steps give has changed."""
    model: str = ""
    """A further model of the worker that was asked, as a key of `serves`; empty: the lane's own."""
    host_slowness: float = 0.0
    """By how much the host was slower than usual meanwhile, as the logarithm of a ratio, so far as it can tell."""

    @property
    def is_clean(self) -> bool:
        """Whether the run says anything about the worker's speed."""
        return (
            self.void is None
            and not self.is_warmup
            and self.decode_tok_s is not None
            and math.isfinite(self.decode_tok_s)
            and self.decode_tok_s > 0
        )


class Status(StrEnum):
    """What the judge says of a worker."""

    HEALTHY = "healthy"
    SUSPECT = "suspect"
    DEGRADED = "degraded"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Verdict:
    """A status and the evidence for it. ``ratio`` is worker over baseline: 0.31 is a worker at 31 % of a fresh one."""

    status: Status
    reason: str
    at: float = 0.0
    model: str = ""
    """The further model that all of it is of, as a key of `serves`; empty: the lane's own."""
    prompt_tokens: int | None = None
    """The size that ``ratio`` and ``samples`` are of."""
    ratio: float | None = None
    interval: tuple[float, float] | None = None
    """Of ``ratio``, at about 95 %."""
    confidence: float | None = None
    samples: tuple[float, ...] = ()
    """The decode rates (tokens/s) the verdict rests on, oldest first."""
    baseline_tok_s: float | None = None
    decode_tok_s: float | None = None
    """Median over ``samples`` at the smallest prompt size."""
    by_prompt_tokens: tuple[tuple[int, float], ...] = ()
    """Median decode rate per prompt size."""
    tokens_per_step: tuple[float, float] | None = None
    """Where the worker tells: of its first runs, and of its last ones. A rate that fell by as much fell for that."""
    plain_tok_s: tuple[float, float] | None = None
    """With speculation off, where the worker can leave it: of its first runs, and of its last ones."""
    wants_runs: int = 0
    """How many back-to-back runs the judge asks for now (a burst); 0: the usual cadence will do."""
    wants_model: str = ""
    """The further model that these runs are to be of; empty: the lane's own."""
    wants_size: int | None = None
    """The prompt size that the next runs should have, while one is in doubt; None: whichever's turn it is."""
    wants_soon: bool = False
    """Whether the next visit should come sooner than by the usual cadence."""
    wants_nonce: bool = False
    """Whether the next runs should tell how fast a prompt is read."""
    prefill: Verdict | None = None
    """Of reading prompts, in prompt tokens/s, judged apart; None while there is nothing to hold it against."""


NO_VERDICT = Verdict(Status.UNKNOWN, "not measured yet")
