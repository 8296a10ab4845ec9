from __future__ import annotations

from dataclasses import replace

import pytest

from supervisor.core.samples import Purpose, Sample, Status, Verdict, Void
from supervisor.core.speed.cadence import Cadence
from supervisor.core.terms import CanaryTerms

TERMS = CanaryTerms()
SUSPECT = Verdict(Status.SUSPECT, "slow", wants_size=3072, wants_soon=True)
HEALTHY = Verdict(Status.HEALTHY, "well")


def sample(at: float, size: int = 256, *, void: Void | None = None, took_s: float = 1.0, **more: object) -> Sample:
    one = Sample(at, at, 1, size, Purpose.ROUTINE, None if void else 60.0, void, took_s=took_s)
    return replace(one, **more)  # type: ignore[arg-type]


DISTURBED = sample(0.0, void=Void.LANE_BUSY)


def follow(cadence: Cadence, at: float, runs: int, took_s: float = 1.0) -> tuple[list[tuple[int, bool]], float]:
    """What ``runs`` runs by this timetable were, and when it ended."""
    plans = []
    for _ in range(runs):
        at += cadence.due_in(at)
        size, has_nonce = cadence.plan(at)
        plans.append((size, has_nonce))
        at += took_s
        cadence.took(sample(at, size, took_s=took_s))
    return plans, at


def test_every_size_takes_its_turn_and_the_smallest_most_often() -> None:
    plans, _ = follow(Cadence(replace(TERMS, prompt_tokens=(8192, 256, 3072))), 0.0, 60)
    sizes = [size for size, _ in plans]
    assert sizes.count(256) == 40
    assert sizes.count(3072) == sizes.count(8192) == 10
    assert sizes[1] != 256, "a new worker is fresh only once: the large sizes come early"


def test_every_twelfth_run_has_a_nonce() -> None:
    plans, _ = follow(Cadence(TERMS), 0.0, 36)
    assert [turn for turn, (_, has_nonce) in enumerate(plans) if has_nonce] == [0, 12, 24]


def test_runs_come_as_often_as_wanted_but_never_cost_more_than_their_budget() -> None:
    cadence = Cadence(TERMS)
    assert cadence.due_in(1000.0) == 30.0
    cadence.took(sample(1031.0, took_s=1.0))
    assert cadence.due_in(1031.0) == 300.0
    cadence.took(sample(1331.0, took_s=10.0))
    assert cadence.due_in(1331.0) == pytest.approx(1000.0)
    _, ended = follow(Cadence(TERMS), 0.0, 100, took_s=12.0)
    assert 100 * 12.0 / ended <= TERMS.budget * 1.02


def test_new_terms_count_at_once() -> None:
    cadence = Cadence(TERMS)
    cadence.took(sample(0.0))
    cadence.terms = replace(TERMS, every_s=10.0, budget=1.0, idle_for_s=0.0)
    assert cadence.due_in(4.0) == 6.0


def test_under_suspicion_the_size_in_doubt_comes_sooner() -> None:
    cadence = Cadence(TERMS)
    cadence.took(sample(0.0))
    cadence.heed(SUSPECT)
    assert cadence.due_in(0.0) == pytest.approx(90.0)
    assert cadence.plan(0.0) == (3072, False)
    cadence.heed(replace(SUSPECT, wants_size=256))
    assert cadence.plan(0.0) == (256, False)
    cadence.heed(HEALTHY)
    assert cadence.due_in(0.0) == 300.0
    assert cadence.plan(0.0)[0] == 3072, "its turn, by the timetable"


def test_a_burst_takes_no_turn_and_is_not_charged_twice() -> None:
    cadence = Cadence(TERMS)
    cadence.took(sample(0.0, took_s=1.0))
    for at in range(4):
        cadence.took(sample(float(at), took_s=50.0, purpose=Purpose.BURST))
    assert cadence.plan(3.0)[0] == 3072
    assert cadence.due_in(3.0) == 300.0


def test_a_void_run_takes_no_turn() -> None:
    cadence = Cadence(TERMS)
    cadence.took(sample(0.0))
    cadence.took(sample(300.0, 3072, void=Void.CLIENT_ARRIVED))
    assert cadence.plan(300.0)[0] == 3072


def test_a_size_that_the_worker_refuses_is_not_asked_again() -> None:
    cadence = Cadence(TERMS)
    cadence.took(sample(0.0, 3072, void=Void.UNMEASURABLE))
    plans, _ = follow(cadence, 0.0, 24)
    assert {size for size, _ in plans} == {256}


def test_a_size_that_takes_long_to_read_comes_rarely() -> None:
    cadence, at = Cadence(TERMS), 0.0
    turns = []
    for turn in range(48):
        at += cadence.due_in(at)
        size, _ = cadence.plan(at)
        cadence.took(sample(at, size, ttft_s=3.0 if size == 3072 else 0.1))
        if size == 3072:
            turns.append(turn)
    assert turns == [1, 13, 25, 37]


def test_a_size_that_would_take_long_by_the_measured_prefill_rate_does_not_begin() -> None:
    cadence = Cadence(TERMS)
    cadence.took(sample(0.0, ttft_s=2.5, prefill_tok_s=100.0))
    assert cadence.plan(1.0)[0] == 256


def test_a_disturbed_run_is_tried_again_soon_but_what_it_wasted_is_paid_for() -> None:
    cadence = Cadence(TERMS)
    cadence.took(sample(0.0))
    cadence.took(sample(300.0, void=Void.LANE_BUSY, took_s=0.0))
    assert cadence.retry_in(300.0) == TERMS.idle_for_s
    cadence.took(sample(305.0, void=Void.CLIENT_ARRIVED, took_s=1.0))
    assert cadence.retry_in(305.0) == pytest.approx(50.0)


def test_a_failure_is_looked_into_at_once() -> None:
    cadence = Cadence(TERMS)
    cadence.took(sample(300.0, void=Void.TIMED_OUT, took_s=15.0))
    assert cadence.retry_in(300.0) == TERMS.idle_for_s


@pytest.mark.parametrize("void", [Void.UNMEASURABLE, Void.TOO_FEW_TOKENS, Void.NO_TOKENS])
def test_a_run_that_would_bring_no_more_waits_its_time(void: Void) -> None:
    cadence = Cadence(TERMS)
    cadence.took(sample(0.0, void=void, took_s=5.0))
    assert cadence.retry_in(0.0) == pytest.approx(500.0)


# ---- a lane that is never idle ----


def test_a_lane_that_is_measured_in_time_needs_no_hold() -> None:
    cadence = Cadence(TERMS)
    for at in range(0, 7200, 300):
        assert cadence.wants_hold(float(at), 240.0) is None
        cadence.took(sample(float(at)))


def test_a_lane_that_is_never_idle_gets_a_short_hold_after_half_an_hour() -> None:
    cadence = Cadence(TERMS)
    assert cadence.wants_hold(10_000.0, 240.0) is None, "the wait begins with the lane, not with the host's clock"
    cadence.took(DISTURBED)
    assert cadence.wants_hold(11_799.0, 240.0) is None
    assert cadence.wants_hold(11_800.0, 240.0) == TERMS.hold_s


def test_a_lane_whose_run_no_client_has_disturbed_gets_no_hold_however_long_ago_the_last_one_was() -> None:
    cadence = Cadence(TERMS)
    cadence.took(sample(0.0))
    assert cadence.wants_hold(100_000.0, 240.0) is None


def test_a_hold_in_vain_doubles_the_time_to_the_next() -> None:
    cadence, at, gaps = Cadence(TERMS), 0.0, []
    cadence.took(DISTURBED)
    cadence.wants_hold(at, 240.0)
    last = 0.0
    while len(gaps) < 3:
        at += 10.0
        if cadence.wants_hold(at, 240.0):
            gaps.append(at - last)
            cadence.hold_failed(at + TERMS.hold_s)
            last = at + TERMS.hold_s
    assert gaps == pytest.approx([1800, 3600, 7200], abs=10)


def test_a_suspicion_that_clients_keep_disturbing_may_hold_sooner_and_in_the_end_longer() -> None:
    cadence, at = Cadence(TERMS), 0.0
    cadence.took(sample(0.0))
    cadence.heed(SUSPECT)
    assert cadence.wants_hold(1.0, 240.0) is None
    for _ in range(3):
        cadence.took(sample(1.0, void=Void.LANE_BUSY))
    holds = []
    while len(holds) < 4:
        at += 10.0
        hold = cadence.wants_hold(at, 240.0)
        if hold:
            holds.append(hold)
            at += hold
            cadence.hold_failed(at)
            cadence.took(sample(at, void=Void.LANE_BUSY))
    assert holds == [30.0, 30.0, 30.0, 240.0]
    assert at < 2 * 3600


def test_held_time_is_paid_for_too() -> None:
    cadence = Cadence(replace(TERMS, force_after_s=100.0))
    cadence.wants_hold(0.0, 240.0)
    cadence.took(DISTURBED)
    assert cadence.wants_hold(100.0, 240.0) == 30.0
    cadence.took(sample(120.0))
    cadence.hold_worked(120.0)
    cadence.took(DISTURBED)
    assert cadence.wants_hold(120.0 + 1990.0, 240.0) is None
    assert cadence.wants_hold(120.0 + 2000.0, 240.0) == 30.0
