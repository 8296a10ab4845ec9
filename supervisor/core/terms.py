"""The terms a lane lives under: its settings as the core needs them, resolved, in seconds and bytes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Trigger(StrEnum):
    """What set a recycle off. The words are fixed by the recycle log."""

    DEGRADED = "degraded"
    OPERATOR = "operator"
    CRASHED = "crashed"
    HUNG = "hung"
    BUDGET = "budget"
    MEMORY = "memory"
    AGE = "age"
    BAD_SPAWN = "bad_spawn"
    CONFIG = "config"


class Replace(StrEnum):
    """How a worker is replaced."""

    OVERLAP = "overlap"
    """The new worker starts beside the old one."""
    IN_PLACE = "in_place"
    """The old worker goes first."""


class RemedyName(StrEnum):
    """What a worker may be able to undo by itself. The words are fixed by the worker protocol."""

    CLEAR_CACHE = "clear_cache"
    DROP_PREFIX_CACHE = "drop_prefix_cache"
    SPECULATION_OFF = "speculation_off"


class Wish(StrEnum):
    """What a person wants of the lane; kept over reloads and daemon restarts."""

    RUNNING = "running"
    DRAINED = "drained"
    STOPPED = "stopped"


class TimerName(StrEnum):
    """The waits of a lane. Each has a length in ``LaneTerms``."""

    ROOM = "room"
    START = "start"
    WARM = "warm"
    CANARY = "canary"
    CANARY_HOLD = "canary_hold"
    WAIT_IDLE = "wait_idle"
    DRAIN = "drain"
    CUT = "cut"
    PROOF = "proof"
    VERIFY = "verify"
    STOP = "stop"
    KILL = "kill"
    BACK_OFF = "back_off"
    RETIRE = "retire"
    RETRY = "retry"
    REMEDY = "remedy"


@dataclass(frozen=True, slots=True)
class CanaryTerms:
    """When and how a lane is measured. Seconds; shares of lane time for the budgets."""

    every_s: float = 300.0
    prompt_tokens: tuple[int, ...] = (256, 3072)
    models: tuple[str, ...] = ()
    """Keys of `serves`: further models of the worker, measured in turn with the lane's own at the smallest size."""
    max_tokens: int = 64
    max_time_s: float = 4.0
    idle_for_s: float = 5.0
    budget: float = 0.01
    burst_budget: float = 0.02
    hold_s: float = 30.0
    force_after_s: float = 1800.0


@dataclass(frozen=True, slots=True)
class BaselineTerms:
    """Up to when a worker counts as fresh: the earlier of the two."""

    fresh_for_s: float = 600.0
    fresh_requests: int = 20


@dataclass(frozen=True, slots=True)
class DegradedTerms:
    """Ratios to the baseline under which a worker has aged, and has aged badly."""

    below: float = 0.89
    severe: float = 0.50


@dataclass(frozen=True, slots=True)
class RecycleTerms:
    """When a recycle may happen. ``after_*``: the budgets of ``recycle.after``, None where there is none."""

    is_advised_only: bool = False
    is_off: bool = False
    max_per_hour: int = 2
    max_per_day: int = 8
    min_uptime_s: float = 600.0
    wait_idle_s: float = 900.0
    max_hold_s: float = 240.0
    verify_timeout_s: float = 600.0
    learns: bool = False
    """Whether workers are replaced at the age at which that has paid best."""
    after_generated_tokens: int | None = None
    after_requests: int | None = None
    after_uptime_s: float | None = None

    @property
    def acts_alone(self) -> bool:
        """Whether a worker may be replaced without a person's word."""
        return not (self.is_off or self.is_advised_only)


@dataclass(frozen=True, slots=True)
class LaneTerms:
    """All of it. ``stop_timeout_s`` None: 30 s and half a second per resident GB."""

    canary: CanaryTerms = CanaryTerms()
    baseline: BaselineTerms = BaselineTerms()
    degraded: DegradedTerms = DegradedTerms()
    recycle: RecycleTerms = RecycleTerms()
    is_on_demand: bool = False
    idle_unload_s: float | None = None
    start_timeout_s: float = 600.0
    warm_timeout_s: float = 60.0
    drain_timeout_s: float = 600.0
    shutdown_timeout_s: float = 60.0
    stop_timeout_s: float | None = None
    handoff_s: float = 0.0
    """How long a worker may save its prefix cache before its stop signal; 0: it saves none."""
    remedies: tuple[RemedyName, ...] = tuple(RemedyName)
    """What the worker may offer; one that does not says so when it is asked."""
    may_kill: bool = True
    can_restart: bool = True
    """False: someone else runs the server, and has not said how it is restarted."""
    replace: Replace | None = None
    """None (auto): overlap if twice the measured peak fits ``memory_budget_bytes``."""
    memory_budget_bytes: int = 0
    memory_limit_bytes: int | None = None
    memory_timeout_s: float = 60.0
