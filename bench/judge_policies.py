"""What a policy keeps of the tokens that an always fresh worker would have made, for several ways to age."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import Any

from bench.judge_lane import BenchLane
from bench.judge_world import DAY_S, HOUR_S, Slowness, World, linear, never
from supervisor.core.terms import RecycleTerms

DAYS = 20
COST_S = 300.0
CRON_S = 6 * HOUR_S
PERIODS_S = tuple(60.0 * minutes for minutes in (12, 18, 25, 35, 50, 75, 110, 160, 240, 360, 540, 800, 1200, 2400))
STEP_S = 30.0
WITHIN = 1.0
"""Points."""
LIMITLESS = RecycleTerms(max_per_hour=99, max_per_day=999)


@dataclass(frozen=True)
class Row:
    """One way to age. ``kept``: what the design's simulation says the detector keeps, in per cent."""

    name: str
    kept: float
    busy: float = 1.0


ROWS = (
    Row("never", 100.0),
    Row("linear to 1/3.2 in 10 h", 87.2),
    Row("the same per work, 30 % busy", 91.1, busy=0.3),
    Row("step to 0.2 at 15-40 min", 68.4),
    Row("step to 1/3.2, onset 12 h mean", 98.3),
    Row("0.8x after 10 min", 79.5),
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
    luck = random.Random(seed * 100_003 + worker).random()
    onset_s = 60 * (15 + 25 * luck) if factor == 5.0 else -math.log(1 - luck) * 12 * HOUR_S
    return math.log(factor) if age_s >= onset_s else 0.0


def _soon_slower(age_s: float, _worker: int) -> float:
    return -math.log(0.8) if age_s >= 600 else 0.0


def by_period(slowness: Slowness, period_s: float | None, cost_s: float) -> float:
    """The share of tokens kept when each worker is replaced at that age; None: never."""
    made, at, worker = 0.0, 0.0, 0
    while at < DAYS * DAY_S:
        life_s = min(period_s or math.inf, DAYS * DAY_S - at)
        steps = max(int(life_s / STEP_S), 1)
        made += sum(math.exp(-slowness((step + 0.5) * STEP_S, worker)) for step in range(steps)) * life_s / steps
        at += life_s + cost_s
        worker += 1
    return 100 * made / (DAYS * DAY_S)


class WorkingLane(BenchLane):
    """Counts what its workers make; recycles cost ``COST_S``, in idle moments a share of it."""

    def __init__(self, row: Row, seed: int) -> None:
        self.made = 0.0
        self.judged_until = 0.0
        super().__init__(World(slowness=ageing(row, seed), start_s=COST_S * row.busy), seed)
        self.recycle_terms = LIMITLESS
        self.minds_worth = True

    def recycle_work(self, until: float) -> None:
        """Add what was made up to then."""
        while self.judged_until < until:
            step = min(STEP_S, until - self.judged_until)
            age = max(self.judged_until + step / 2 - self.began, 0.0)
            self.made += step * math.exp(-self.world.slowness(age, self.worker))
            self.judged_until += step


def one_lane(job: tuple[Row, int]) -> tuple[float, float]:
    """Tokens kept in per cent, and recycles a day."""
    row, seed = job
    lane = WorkingLane(row, seed)
    lane.judged_until = lane.began
    began, count = lane.at, 0
    while lane.at < DAYS * DAY_S:
        worker, lived_until = lane.worker, lane.at
        lane.live(min(lane.at + 1.0, DAYS * DAY_S))
        if lane.worker == worker:
            lane.recycle_work(lane.at)
        else:
            count += 1
            ended = lane.recycled[-1].at
            work = last_work(lane, worker, lived_until, ended)
            lane.made += work
            lane.judged_until = lane.began
            lane.recycle_work(lane.at)
    return 100 * lane.made / (DAYS * DAY_S - began), count / DAYS


def last_work(lane: WorkingLane, worker: int, begin: float, end: float) -> float:
    """What the old worker made between its last probe and its end."""
    age = lane.recycled[-1].age_s - (end - begin) / 2
    return max(end - begin, 0.0) * math.exp(-lane.world.slowness(max(age, 0.0), worker))


def policies(pool: Executor, *, lanes: int) -> list[dict[str, Any]]:
    """The table, a line for each way to age."""
    return [_line(row, pool, lanes) for row in ROWS]


def _line(row: Row, pool: Executor, lanes: int) -> dict[str, Any]:
    kept = list(pool.map(one_lane, [(row, seed) for seed in range(lanes)]))
    cost_s, slowness = COST_S * row.busy, ageing(row, 1)
    fixed = {period: by_period(slowness, period, cost_s) for period in PERIODS_S}
    best = max(fixed, key=lambda period: fixed[period])
    mean = _mean([share for share, _ in kept])
    return {
        "ageing": row.name,
        "none": round(by_period(slowness, None, cost_s), 1),
        "cron_6h": round(by_period(slowness, CRON_S, cost_s), 1),
        "detector": round(mean, 1),
        "detector_recycles_a_day": round(_mean([count for _, count in kept]), 2),
        "best_period_in_hindsight": round(fixed[best], 1),
        "best_period_min": best / 60,
        "bars": {"-detector": row.kept - WITHIN},
        "holds": mean >= row.kept - WITHIN,
    }


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
