"""The marginal-value rule: replace a worker when it yields less than its life's mean, its replacement counted."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from supervisor.core.recycle.worth import Worth

RATIOS = st.lists(st.floats(0.01, 0.99), min_size=1, max_size=50)


def life(ratios: list[float], step_s: float = 300.0) -> Worth:
    worth = Worth()
    for index, ratio in enumerate(ratios, 1):
        worth.measured(index * step_s, ratio)
    return worth


@given(RATIOS)
def test_what_costs_without_end_is_never_worth_it(ratios: list[float]) -> None:
    assert not life(ratios).is_worth_it(1e12)


@given(RATIOS)
def test_what_costs_nothing_is_worth_it_while_the_worker_only_gets_slower(ratios: list[float]) -> None:
    assert life(sorted(ratios, reverse=True)).is_worth_it(0.0)


@given(RATIOS, st.floats(0, 1e4), st.floats(0, 1e4))
def test_a_higher_cost_never_makes_it_worth_more(ratios: list[float], one: float, other: float) -> None:
    worth = life(ratios)
    if worth.is_worth_it(max(one, other)):
        assert worth.is_worth_it(min(one, other))


def test_a_worker_that_soon_ran_at_four_fifths_is_not_replaced_over_and_over() -> None:
    """0.8 after 10 minutes, and 5 minutes to replace it: never replacing keeps most."""
    worth = Worth()
    worth.measured(600, 1.0)
    worth.measured(601, 0.8)
    for minutes in range(15, 600, 5):
        worth.measured(minutes * 60.0, 0.8)
        assert not worth.is_worth_it(300.0)
    assert "80 % of a fresh worker's work" in (worth.objection(300.0) or "")


def test_a_worker_pinned_at_a_fifth_is_replaced_at_once() -> None:
    worth = Worth()
    worth.measured(1800, 1.0)
    worth.measured(1801, 0.2)
    worth.measured(1900, 0.2)
    assert worth.objection(300.0) is None
    assert worth.lost_s > 70
