"""What visits share must be learned from the runs themselves, and ageing must not be taken for it."""

from __future__ import annotations

import math
import random

import pytest

from supervisor.core.speed.lane_noise import RUNS_THAT_MEASURE, SHARED_VARIANCE, LaneNoise

SD = 0.14


def learned(runs: int, shared: float, correlation: float, *, trend: float = 0.0, seed: int = 0) -> LaneNoise:
    """Runs of which a share of the variance is an autocorrelated part."""
    chance, noise = random.Random(seed), LaneNoise()
    state = chance.gauss(0, 1)
    for index in range(runs):
        state = correlation * state + math.sqrt(1 - correlation**2) * chance.gauss(0, 1)
        slowness = SD * (math.sqrt(shared) * state + math.sqrt(1 - shared) * chance.gauss(0, 1)) + trend * index
        noise.add(slowness, SD)
    return noise


def test_until_there_are_enough_runs_a_moderate_value_is_believed() -> None:
    noise = learned(RUNS_THAT_MEASURE - 1, 0.5, 0.6)
    assert not noise.is_measured
    assert noise.shared_variance(SD) == SHARED_VARIANCE


@pytest.mark.parametrize(("shared", "correlation"), [(0.0, 0.0), (0.25, 0.3), (0.5, 0.6)])
def test_it_finds_the_long_run_variance(shared: float, correlation: float) -> None:
    true = 1 - shared + shared * (1 + correlation) / (1 - correlation)
    found = [learned(3000, shared, correlation, seed=seed).inflation for seed in range(20)]
    assert true * 0.8 < sum(found) / len(found) < true * 1.35


def test_a_steady_trend_is_no_noise() -> None:
    flat = sum(learned(1000, 0.0, 0.0, seed=seed).inflation for seed in range(20)) / 20
    ageing = sum(learned(1000, 0.0, 0.0, trend=0.01, seed=seed).inflation for seed in range(20)) / 20
    assert ageing == pytest.approx(flat, rel=0.15)


def test_it_goes_through_json_and_survives_nonsense() -> None:
    noise = learned(1000, 0.5, 0.6)
    again = LaneNoise.from_json(noise.to_json())
    assert again.inflation == noise.inflation
    assert again.is_measured
    for nonsense in ({}, {"sum": "x"}, {"sum": math.nan, "count": 1, "runs": 1}, {"sum": -1, "count": 1, "runs": 1}):
        assert not LaneNoise.from_json(nonsense).is_measured
