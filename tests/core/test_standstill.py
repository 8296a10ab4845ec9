"""A start that shows no sign of work stands still; one that works, however slowly, never does."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.core.health.standstill import GROWTH_BYTES, WORKING_CORES, Standstill, StartReading

PATIENCE_S = 90.0
BEGUN = StartReading(at=0.0, cpu_s=0.0, memory_bytes=0, printed_bytes=0)


def after(seconds: float, **signs: float) -> StartReading:
    return replace(BEGUN, at=seconds, **signs)


def test_a_start_without_a_sign_of_work_stands_still_once_patience_is_over() -> None:
    start = Standstill(PATIENCE_S, BEGUN)
    assert not start.look(after(PATIENCE_S - 1.0))
    assert start.look(after(PATIENCE_S))
    assert start.still_s == PATIENCE_S


@pytest.mark.parametrize(
    "sign",
    [{"printed_bytes": 1}, {"memory_bytes": GROWTH_BYTES}, {"cpu_s": 2 * WORKING_CORES * PATIENCE_S}],
    ids=lambda sign: next(iter(sign)),
)
def test_any_sign_of_work_begins_the_patience_anew(sign: dict[str, float]) -> None:
    start = Standstill(PATIENCE_S, BEGUN)
    assert not start.look(after(PATIENCE_S, **sign))
    assert not start.look(after(2 * PATIENCE_S - 1.0, **sign))
    assert start.look(after(2 * PATIENCE_S, **sign))


def test_a_start_that_moves_again_stands_still_no_more() -> None:
    start = Standstill(PATIENCE_S, BEGUN)
    assert start.look(after(PATIENCE_S))
    assert not start.look(after(PATIENCE_S + 1.0, printed_bytes=1))


def test_a_process_that_only_sleeps_and_looks_stands_still() -> None:
    start = Standstill(PATIENCE_S, BEGUN)
    stands = [start.look(after(second, cpu_s=0.5 * WORKING_CORES * second)) for second in range(1, 91)]
    assert stands[-1]


def test_time_in_which_nobody_looked_is_not_held_against_it() -> None:
    start = Standstill(PATIENCE_S, BEGUN)
    assert not start.look(after(10 * PATIENCE_S), was_blind=True)


@given(st.lists(st.floats(0.1, PATIENCE_S - 0.1), min_size=1, max_size=30))
def test_a_start_that_grows_with_each_look_never_stands_still(waits: list[float]) -> None:
    start, at, memory = Standstill(PATIENCE_S, BEGUN), 0.0, 0
    for wait in waits:
        at, memory = at + wait, memory + GROWTH_BYTES
        assert not start.look(after(at, memory_bytes=memory))
