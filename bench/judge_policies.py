"""What a policy keeps of the tokens that an always fresh worker would have made, for several ways to age."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from statistics import fmean, stdev
from typing import Any

from bench.judge_lane import EVERY_S, BenchLane
from bench.judge_world import DAY_S, HOUR_S, Slowness, World, linear, never
from supervisor.core.samples import Purpose, Sample, Verdict
from supervisor.core.speed.age_curve import AgeCurve
from supervisor.core.speed.ageing import STARTING_SHARE
from supervisor.core.terms import RecycleTerms

DAYS = 20
COST_S = 300.0
CRON_S = 6 * HOUR_S
PERIODS_S = tuple(60.0 * minutes for minutes in (12, 18, 25, 35, 50, 75, 110, 160, 240, 360, 540, 800, 1200, 2400))
STEP_S = 30.0
VISIT_S = 10.0
"""From a probe's begin the soonest that a worker is replaced for its age."""
OVERLAP_START_S = 30.0
WITHIN = 1.0
"""Points."""
LIMITLESS = RecycleTerms(max_per_hour=99, max_per_day=999)


@dataclass(frozen=True)
class Row:
    """One way to age, and what the design's simulation keeps, in per cent."""

    name: str
    detector: float
    learned_age: float
    overlap: float
    """With a learned age, and nothing to pay for a recycle: the least."""
    busy: float = 1.0


ROWS = (
    Row("never", 100.0, 100.0, 95.0),
    Row("linear to 1/3.2 in 10 h", 87.2, 89.2, 95.0),
    Row("the same per work, 30 % busy", 91.1, 93.2, 95.0, busy=0.3),
    Row("step to 0.2 at 15-40 min", 68.4, 75.4, 84.0),
    Row("step to 1/3.2, onset 12 h mean", 98.3, 97.8, 95.0),
    Row("0.8x after 10 min", 79.5, 79.3, 82.0),
)


@dataclass(frozen=True)
class Policy:
    """How a lane decides, beside what finds it slow."""

    name: str
    learns: bool
    overlaps: bool


Lane = tuple[Row, Policy, int]
"""The last is its seed."""

POLICIES = (
    Policy("detector", learns=False, overlaps=False),
    Policy("learned_age", learns=True, overlaps=False),
    Policy("overlap_detector", learns=False, overlaps=True),
    Policy("overlap_learned_age", learns=True, overlaps=True),
)


def ageing(row: Row, seed: int) -> Slowness:
    """How the workers of one lane age; each by its own luck."""
    match row.name:
        case "never":
            return never
        case "step to 0.2 at 15-40 min":
            return partial(_step_at, seed, 5.0)
        case "step to 1/3.2, onset 12 h mean":
            return partial(_step_at, seed, 3.2)
        case "0.8x after 10 min":
            return _soon_slower
        case _:
            return linear(1 / 3.2, 10 * HOUR_S / row.busy)


def _step_at(seed: int, factor: float, age_s: float, worker: int) -> float:
    luck = _luck(seed, worker)
    onset_s = 60 * (15 + 25 * luck) if factor == 5.0 else -math.log(1 - luck) * 12 * HOUR_S
    return math.log(factor) if age_s >= onset_s else 0.0


@lru_cache(maxsize=4096)
def _luck(seed: int, worker: int) -> float:
    return random.Random(seed * 100_003 + worker).random()


def _soon_slower(age_s: float, worker: int) -> float:  # noqa: ARG001 - all workers alike
    return -math.log(0.8) if age_s >= 600 else 0.0


def by_period(slowness: Slowness, period_s: float | None, cost_s: float) -> float:
    """The share of tokens kept when each worker is replaced at that age; None: never."""
    made, at, worker = 0.0, 0.0, 0
    while at < DAYS * DAY_S:
        life_s = min(period_s or math.inf, DAYS * DAY_S - at)
        made += work_s(partial(slowness, worker=worker), life_s)
        at += life_s + cost_s
        worker += 1
    return 100 * made / (DAYS * DAY_S)


class WorkingLane(BenchLane):
    """Counts what its workers make; recycles cost ``COST_S``, in idle moments a share of it, with overlap nothing."""

    def __init__(self, row: Row, policy: Policy, seed: int) -> None:
        self.curve: AgeCurve | None = None
        self.best_age_s: float | None = None
        start_s = 0.0 if policy.overlaps else COST_S * row.busy
        super().__init__(World(slowness=ageing(row, seed), start_s=start_s), seed)
        self.recycle_terms = LIMITLESS
        self.minds_worth = True
        self.made_s = 0.0
        self.least_s = OVERLAP_START_S / STARTING_SHARE if policy.overlaps else self.recycle_terms.min_uptime_s
        self.by_age = 0
        self.curve = AgeCurve(EVERY_S) if policy.learns else None

    def recycle(self, before: Verdict | None) -> None:
        """Count what the life made; what the curve learns of it decides how long the next may last."""
        age_s = self.at - self.began
        self.made_s += work_s(partial(self.world.slowness, worker=self.worker), age_s)
        if self.curve:
            self.curve.life_ended(age_s, is_slow=before is not None)
        super().recycle(before)
        if self.curve:
            known = self.curve.best_age_s(self.world.start_s, self.least_s)
            self.best_age_s = None if self.curve.is_left_alone else known

    def _probe(self) -> None:
        begins = self.at
        super()._probe()
        if self.best_age_s is not None and self.at - self.began >= self.best_age_s:
            self.at = min(self.at, max(self.began + self.best_age_s, begins + VISIT_S))
            self.by_age += 1
            self.recycle(None)

    def _run(self, size: int, purpose: Purpose) -> Sample:
        sample = super()._run(size, purpose)
        reference = self.judge.reference(size) if self.curve else None
        if self.curve and reference and sample.decode_tok_s:
            self.curve.measured(self.at - self.began, sample.decode_tok_s / reference.tok_s)
        return sample

    def kept(self) -> tuple[float, float]:
        """After ``DAYS`` of service: tokens kept in per cent, and recycles a day."""
        self.live(DAYS * DAY_S)
        made_s = self.made_s + work_s(partial(self.world.slowness, worker=self.worker), self.at - self.began)
        return 100 * made_s / self.at, len(self.recycled) / self.at * DAY_S


def work_s(slowness: Callable[[float], float], age_s: float) -> float:
    """What a worker has done up to that age, in seconds of a fresh one."""
    steps = max(int(age_s / STEP_S), 1)
    return sum(math.exp(-slowness((step + 0.5) * age_s / steps)) for step in range(steps)) * age_s / steps


def one_lane(job: Lane) -> tuple[float, float]:
    """For a pool of processes."""
    row, policy, seed = job
    return WorkingLane(row, policy, seed).kept()


def table(kept: Mapping[Lane, tuple[float, float]]) -> list[dict[str, Any]]:
    """A line for each way to age."""
    return [
        _line(row, {policy: [kept[lane] for lane in kept if lane[:2] == (row, policy)] for policy in POLICIES})
        for row in ROWS
    ]


def _line(row: Row, found: dict[Policy, list[tuple[float, float]]]) -> dict[str, Any]:
    cost_s, slowness = COST_S * row.busy, ageing(row, 1)
    fixed = {period: by_period(slowness, period, cost_s) for period in PERIODS_S}
    best = max(fixed, key=lambda period: fixed[period])
    line: dict[str, Any] = {
        "ageing": row.name,
        "none": round(by_period(slowness, None, cost_s), 1),
        "cron_6h": round(by_period(slowness, CRON_S, cost_s), 1),
    }
    for policy, lanes in found.items():
        kept = [share for share, _ in lanes]
        line[f"{policy.name}_lanes"] = len(kept)
        line[policy.name] = round(fmean(kept), 1)
        line[f"{policy.name}_error"] = round(stdev(kept) / math.sqrt(len(kept)), 2) if len(kept) > 1 else None
        line[f"{policy.name}_recycles_a_day"] = round(fmean([count for _, count in lanes]), 2)
    bars = {
        "-detector": row.detector - WITHIN,
        "-learned_age": row.learned_age - WITHIN,
        "-overlap_learned_age": row.overlap,
    }
    return line | {
        "best_period_in_hindsight": round(fixed[best], 1),
        "best_period_min": best / 60,
        "bars": bars,
        "holds": all(line[key[1:]] >= least for key, least in bars.items()),
    }
