"""The worlds the judge is tried in, and what is asked of it in each."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from bench.judge_lane import EVERY_S, BenchLane
from bench.judge_world import DAY_S, HOUR_S, World, competitor, day_night, linear, step, throttle

YEAR_DAYS = 365
FIRST_ONSET_S = HOUR_S
LONGEST_DELAY = 300
SPREAD = 0.618034
"""Onsets lie this far apart, in probes: however few lanes there are, they fall evenly between two probes."""
HALF = 0.5
FEWEST_LANES = 2


@dataclass(frozen=True)
class Scenario:
    """``bars``: the most (or with a minus sign before the key, the least) that may come out."""

    name: str
    world: World
    bars: dict[str, float]
    days: int = 0
    """Lane-days to live through, in lanes of ``days_each``; 0: it is about how soon a slowdown is found."""
    days_each: int = 20
    lanes: int = 400
    factor: float = 1.0
    """Of a step, whose onset is spread over a probe's length."""


SCENARIOS: tuple[Scenario, ...] = (
    Scenario("stationary", World(), {"false_recycles": 1}, days=10_000),
    Scenario("control_1.002", World(sd=0.03, outliers=0.0), {"false_recycles": 0}, days=1_000),
    Scenario("outliers_10pct", World(outliers=0.10), {"false_recycles_per_lane_year": 0.2}, days=2_000),
    Scenario("outliers_12pct", World(outliers=0.12), {"false_recycles_per_lane_year": 1.0}, days=2_000),
    Scenario("spread_38pct", World(sd=0.38), {"false_recycles_per_lane_year": 0.2}, days=2_000),
    Scenario("tick_outliers", World(slow_visits=0.005), {"false_recycles_in_10000_days": 15}, days=4_000),
    Scenario("ar_0.3", World(shared=0.25, correlation=0.3), {"false_recycles_per_lane_year": 2.0}, days=2_000),
    Scenario("ar_0.6", World(shared=0.5, correlation=0.6), {"false_recycles_per_lane_year": 2.0}, days=2_000),
    Scenario("step_3.2x", World(), {"delay_probes_p50": 2, "delay_probes_p99": 2}, factor=3.2),
    Scenario("step_1.6x", World(), {"delay_probes_p95": 4}, factor=1.6),
    Scenario("step_1.3x", World(), {"delay_probes_p50": 6, "delay_probes_p95": 14}, factor=1.3),
    Scenario("linear_10h", World(slowness=linear(1 / 3.2, 10 * HOUR_S)), {"delay_min_p95": 220}),
    Scenario(
        "competitor",
        World(host=competitor, reference_sensitivity=HALF),
        {"false_recycles_per_lane_year": 0.5},
        days=2_000,
    ),
    Scenario(
        "day_night",
        World(host=day_night, reference_sensitivity=HALF),
        {"false_recycles_per_lane_year": 1.0},
        days=2_000,
    ),
    Scenario(
        "throttle",
        World(host=throttle, reference_sensitivity=HALF),
        {"false_recycles_per_lane_year": 0.5},
        days=2_000,
        days_each=28,
    ),
    Scenario("bimodal_spawn", World(slow_spawns=1 / 3), {"recycles_a_day": 4, "-fast_share": 0.9}, days=1_000),
)


def live(scenario: Scenario, seed: int) -> dict[str, Any]:
    """One lane for ``days_each`` days."""
    lane = BenchLane(scenario.world, seed)
    lane.live(scenario.days_each * DAY_S)
    false = [recycled for recycled in lane.recycled if recycled.is_false]
    return {
        "days": lane.at / DAY_S,
        "false": len(false),
        "recycles": len(lane.recycled),
        "runs": lane.runs,
        "voids": lane.voids,
        "running_s": lane.running_s,
        "fast_s": lane.fast_s,
    }


def find(scenario: Scenario, seed: int) -> dict[str, Any]:
    """One lane until its slowdown is found."""
    onset_s, world = 0.0, scenario.world
    if scenario.factor != 1.0:
        onset_s = FIRST_ONSET_S + (seed * SPREAD % 1.0) * EVERY_S
        world = World(**{**vars(world), "slowness": step(scenario.factor, onset_s)})
    lane = BenchLane(world, seed)
    lane.live(onset_s)
    before = lane.probes
    found = lane.until_recycled(LONGEST_DELAY)
    if found is None:
        return {"probes": LONGEST_DELAY, "min": LONGEST_DELAY * EVERY_S / 60, "is_early": False}
    return {
        "probes": found.probes - before,
        "min": (found.age_s - onset_s) / 60,
        "is_early": found.age_s < onset_s,
    }


def lanes_of(scenario: Scenario, share: float) -> int:
    """How many lanes it takes; ``share`` of the full number."""
    full = scenario.days // scenario.days_each if scenario.days else scenario.lanes
    return max(round(full * share), FEWEST_LANES)


def one_lane(job: tuple[Scenario, int]) -> dict[str, Any]:
    """For a pool of processes."""
    scenario, seed = job
    return live(scenario, seed) if scenario.days else find(scenario, seed)


def report(scenario: Scenario, found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The scenario's line in the JSON, with whether it holds its bars."""
    numbers = _of_lives(found) if scenario.days else _of_delays(found)
    misses = {
        key: (numbers[key.lstrip("-")], bar)
        for key, bar in scenario.bars.items()
        if (numbers[key[1:]] < bar if key.startswith("-") else numbers[key] > bar)
    }
    return {"scenario": scenario.name, **numbers, "bars": scenario.bars, "holds": not misses}


def _of_lives(found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    days = sum(lane["days"] for lane in found)
    false = sum(lane["false"] for lane in found)
    low, high = poisson_interval(false)
    runs = sum(lane["runs"] for lane in found)
    return {
        "lane_days": round(days),
        "false_recycles": false,
        "false_recycles_per_lane_year": round(false / days * YEAR_DAYS, 3),
        "interval_per_lane_year": [round(low / days * YEAR_DAYS, 3), round(high / days * YEAR_DAYS, 3)],
        "false_recycles_in_10000_days": round(false / days * 10_000, 2),
        "recycles_a_day": round(sum(lane["recycles"] for lane in found) / days, 3),
        "fast_share": round(sum(lane["fast_s"] for lane in found) / (days * DAY_S), 4),
        "canary_share": round(sum(lane["running_s"] for lane in found) / (days * DAY_S), 5),
        "void_share": round(sum(lane["voids"] for lane in found) / max(runs, 1), 4),
    }


def _of_delays(found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    late = [lane for lane in found if not lane["is_early"]]
    probes, minutes = sorted(lane["probes"] for lane in late), sorted(lane["min"] for lane in late)
    return {
        "lanes": len(found),
        "found_before_onset": len(found) - len(late),
        **{f"delay_probes_p{share}": quantile(probes, share / 100) for share in (50, 95, 99)},
        **{f"delay_min_p{share}": round(quantile(minutes, share / 100), 1) for share in (50, 95)},
    }


def quantile(ordered: Sequence[float], share: float) -> float:
    """Of an ordered sequence, the value that so great a share does not exceed."""
    return ordered[min(math.ceil(share * len(ordered)) - 1, len(ordered) - 1)]


def poisson_interval(count: int) -> tuple[float, float]:
    """Exact 95 % interval of a rate by which ``count`` events came."""
    low = 0.0 if count == 0 else _solve(lambda rate: 1 - _poisson_cdf(count - 1, rate) - 0.025, count)
    return low, _solve(lambda rate: 0.025 - _poisson_cdf(count, rate), count)


def _poisson_cdf(count: int, rate: float) -> float:
    return sum(math.exp(-rate + k * math.log(rate) - math.lgamma(k + 1)) for k in range(count + 1)) if rate else 1.0


def _solve(rising: Callable[[float], float], near: int) -> float:
    low, high = 0.0, 2.0 * near + 20.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if rising(middle) > 0 else (middle, high)
    return low
