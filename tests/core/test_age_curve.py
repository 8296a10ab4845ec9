"""The age at which workers are best replaced is learned from how earlier ones slowed down."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.core.speed.age_curve import LIVES_THAT_TEACH, LIVES_TO_A_LONE_ONE, AgeCurve

STEP_S = 300.0
HOUR_S = 3600.0


def learned(ratio: Callable[[float], float], length_s: float, *, lives: int = 5, is_slow: bool = True) -> AgeCurve:
    """Lives that all went the same way."""
    curve = AgeCurve(STEP_S)
    for _ in range(lives):
        live(curve, ratio, length_s, is_slow=is_slow)
    return curve


def live(curve: AgeCurve, ratio: Callable[[float], float], length_s: float, *, is_slow: bool = True) -> None:
    """One more life, measured once in each step."""
    for probe in range(int(length_s / STEP_S)):
        age_s = (probe + 0.5) * STEP_S
        curve.measured(age_s, ratio(age_s))
    curve.life_ended(length_s, is_slow=is_slow)


def linear(age_s: float) -> float:
    """To a half in eight hours."""
    return 1 - 0.5 * age_s / (8 * HOUR_S)


def test_a_steady_decline_has_its_best_age_where_the_square_root_law_puts_it() -> None:
    """Losing speed at a rate k, a life yields most at an age of about sqrt(2 T / k)."""
    best = learned(linear, 5 * HOUR_S).best_age_s(300.0)
    assert best == pytest.approx(math.sqrt(2 * 300.0 * 16 * HOUR_S), rel=0.2)


def test_fewer_lives_than_teach_have_no_best_age() -> None:
    assert learned(linear, 5 * HOUR_S, lives=LIVES_THAT_TEACH - 1).best_age_s(300.0) is None


def test_workers_that_stay_as_they_soon_are_have_no_best_age() -> None:
    curve = learned(lambda age_s: 1.0 if age_s < 600 else 0.8, 20 * HOUR_S, is_slow=False)
    assert curve.best_age_s(300.0) is None


def test_finding_slow_workers_is_enough_where_they_are_found_at_once() -> None:
    """Slow from one moment to the next, at any age alike: no age is better than waiting for it."""
    curve = AgeCurve(STEP_S)
    for hours in (1, 2, 3, 5, 8, 13, 21):
        live(curve, lambda _: 1.0, hours * HOUR_S)
    assert curve.best_age_s(300.0) is None


@given(st.lists(st.floats(1.0, 1e5), min_size=2, max_size=6))
def test_what_costs_more_is_done_no_sooner(costs: list[float]) -> None:
    curve = learned(linear, 7 * HOUR_S)
    ages = [curve.best_age_s(cost) or math.inf for cost in sorted(costs)]
    assert all(one <= other for one, other in pairwise(ages))


def test_no_age_under_the_least_is_chosen() -> None:
    best = learned(linear, 7 * HOUR_S).best_age_s(0.0, least_s=2 * HOUR_S)
    assert best is not None
    assert best >= 2 * HOUR_S


def test_one_life_in_eight_is_left_alone_once_the_curve_is_known() -> None:
    curve = learned(linear, HOUR_S, lives=LIVES_THAT_TEACH)
    alone = []
    for _ in range(2 * LIVES_TO_A_LONE_ONE):
        alone.append(curve.is_left_alone)
        live(curve, linear, HOUR_S)
    assert sum(alone) == 2


def test_it_goes_through_json_and_survives_nonsense() -> None:
    curve = learned(linear, 5 * HOUR_S)
    document = json.loads(json.dumps(curve.to_json()))
    again = AgeCurve.from_json(document, STEP_S)
    assert again.to_json() == curve.to_json()
    assert again.best_age_s(300.0) == curve.best_age_s(300.0)
    assert AgeCurve.from_json(document, 60.0).lives == 0
    for nonsense in ({}, {"step_s": STEP_S, "lives": [{"ratios": ["x"]}, {"ratios": []}, 3]}, {"lives": "x"}):
        assert AgeCurve.from_json(nonsense, STEP_S).lives == 0
