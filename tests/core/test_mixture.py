"""The evidence R: what it must never do, whatever the noise within the stated contamination."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.core.speed.mixture import (
    CLIP,
    HARMLESS,
    SLOPES,
    SLOW_MEDIANS,
    SLOW_RUNS,
    Mixture,
    clipped_mean,
    factors,
    offsets,
)

SDS = (0.08, 0.1, 0.15, 0.3, 0.6)


def integral(slope: float, shift: float) -> float:
    """Mean of exp(slope x clip(Z + shift)), by Simpson's rule."""
    steps, low, high = 4000, -12.0, 12.0
    width = (high - low) / steps

    def value(z: float) -> float:
        clipped = min(max(z + shift, -CLIP), CLIP)
        return math.exp(slope * clipped - z * z / 2) / math.sqrt(2 * math.pi)

    inner = sum((4 if step % 2 else 2) * value(low + step * width) for step in range(1, steps))
    return (value(low) + inner + value(high)) * width / 3


@pytest.mark.parametrize("slope", SLOPES)
@pytest.mark.parametrize("shift", [-1.0, 0.0, 0.4, 1.0, 4.0])
def test_the_closed_form_is_the_integral(slope: float, shift: float) -> None:
    assert clipped_mean(slope, shift) == pytest.approx(integral(slope, shift), rel=1e-5)


@pytest.mark.parametrize("sd", SDS)
@pytest.mark.parametrize("slow_share", [SLOW_RUNS, SLOW_MEDIANS])
def test_in_the_worst_harmless_world_no_factor_grows_on_average(sd: float, slow_share: float) -> None:
    for slope, taken_off in zip(SLOPES, offsets(sd, slow_share), strict=True):
        for shift in (-0.1, 0.0, 0.03, HARMLESS):
            for share in (0.0, slow_share / 2, slow_share):
                mean = (1 - share) * integral(slope, shift / sd) + share * math.exp(slope * CLIP)
                assert mean * math.exp(-taken_off) <= 1 + 1e-4


@given(st.lists(st.floats(-20, 20), max_size=40), st.lists(st.floats(0, 5), min_size=40, max_size=40))
def test_slower_never_lowers_it(scores: list[float], slower: list[float]) -> None:
    taken_off = offsets(0.15, SLOW_RUNS)
    one, other = Mixture(), Mixture()
    for score, more in zip(scores, slower, strict=False):
        one.feed(factors(score, taken_off))
        other.feed(factors(score + more, taken_off))
        assert other.value >= one.value


def test_it_stays_a_finite_number() -> None:
    mixture = Mixture()
    for _ in range(5000):
        mixture.feed(factors(1e9, offsets(0.15, SLOW_RUNS)))
    assert math.isfinite(mixture.value)
    for _ in range(200):
        mixture.feed(factors(-1.0, offsets(0.15, SLOW_RUNS)))
    assert mixture.value < 5


def test_runs_at_the_baseline_keep_it_under_five_for_ever() -> None:
    for sd in SDS:
        mixture = Mixture()
        for _ in range(5000):
            mixture.feed(factors(0.0, offsets(sd, SLOW_RUNS)))
            assert mixture.value < 5


def test_false_alarms_are_as_rare_as_promised_in_the_worst_harmless_world() -> None:
    """The mean time to reach A is at least A: here A = 300, over 300 trials, each ended at 6 A."""
    chance, bar, times = random.Random(3), 300, []
    taken_off = offsets(0.15, SLOW_RUNS)
    for _ in range(300):
        mixture, runs = Mixture(), 0
        while mixture.value < bar and runs < 6 * bar:
            score = 99.0 if chance.random() < SLOW_RUNS else chance.gauss(HARMLESS / 0.15, 1.0)
            mixture.feed(factors(score, taken_off))
            runs += 1
        times.append(runs)
    assert sum(times) / len(times) > bar
