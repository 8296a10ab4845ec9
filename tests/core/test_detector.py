from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.core.detector import BURST_RUNS, OnePageJudge
from supervisor.core.judge import Judge
from supervisor.core.samples import Purpose, Sample, Status, Void
from supervisor.core.terms import CanaryTerms, LaneTerms
from tests.core.simulated_lane import Noise, SimulatedLane

DAY = 86400.0
QUIET = Noise(spread=0.02, half_rate_share=0.0)


def sample(rate: float | None, *, size: int = 256, at: float = 0.0, purpose: Purpose = Purpose.ROUTINE) -> Sample:
    return Sample(at, at, 1, size, purpose, rate, None if rate else Void.CLIENT_ARRIVED, worker_age_s=9e9)


def learned(fresh: float = 60.0, sizes: tuple[int, ...] = (256, 3072)) -> OnePageJudge:
    """A judge with a full baseline, before the first run of a worker's life."""
    judge: Judge = OnePageJudge.new(LaneTerms())
    judge.restore({"spawns": {str(size): [[fresh] * 8] * 4 for size in sizes}})
    judge.worker_replaced(1)
    assert isinstance(judge, OnePageJudge)
    return judge


# ---- what it must not do ----


def test_noise_with_half_rate_outliers_convicts_nobody_in_a_long_run() -> None:
    """Ten lanes for ten days each, a new worker every day, some 28,000 probes in all."""
    for seed in range(10):
        lane = SimulatedLane(lambda _age, _generation, _size: 60.0, seed=seed)
        for _ in range(10):
            lane.live(DAY)
            lane.new_worker()
        assert lane.convictions == []
        assert lane.suspicions < 0.05 * lane.runs


def test_one_run_and_one_burst_never_convict() -> None:
    judge = learned()
    for _ in range(16):
        judge.observe(sample(60.0))
    assert judge.observe(sample(0.1)).status is Status.HEALTHY
    assert judge.verdict.wants_runs == BURST_RUNS
    while judge.verdict.wants_runs:
        judge.observe(sample(0.1, purpose=Purpose.BURST))
    assert judge.verdict.status is Status.SUSPECT


def test_a_burst_that_finds_the_lane_well_ends_there() -> None:
    judge = learned()
    judge.observe(sample(60.0))
    judge.observe(sample(30.0))
    runs = 0
    while judge.verdict.wants_runs:
        runs += 1
        judge.observe(sample(60.0, purpose=Purpose.BURST))
    assert (runs, judge.verdict.status) == (BURST_RUNS, Status.HEALTHY)


def test_void_runs_change_nothing() -> None:
    judge = learned()
    before = judge.observe(sample(60.0))
    for rate in (None, math.nan, 0.0, -1.0, math.inf):
        assert judge.observe(sample(rate)) is before


# ---- what it must find ----


def test_a_step_to_a_third_is_found_within_three_probes() -> None:
    def rate(age: float, generation: int, _size: int) -> float:
        return 60.0 / 3.2 if age > 3600 and generation == 1 else 60.0

    for seed in range(30):
        lane = SimulatedLane(rate, seed=seed)
        lane.live(3600)
        assert lane.convictions == []
        for _ in range(3):
            lane.probe()
        assert len(lane.convictions) == 1


def test_a_fall_from_66_to_20_over_85_requests_is_found_on_the_way_down() -> None:
    """The public report: 66.5 tok/s fresh, 20.5 after 85 requests; here one request a minute."""

    def rate(age: float, generation: int, _size: int) -> float:
        return 66.5 + (20.5 - 66.5) * min(age / 60.0 / 85.0, 1.0) if generation == 1 else 66.5

    for seed in range(20):
        lane = SimulatedLane(rate, seed=seed, noise=Noise(half_rate_share=0.03))
        while not lane.convictions:
            lane.probe()
        age, _, verdict = lane.convictions[0]
        assert 600 < age < 85 * 60 + 900
        assert verdict.ratio is not None
        assert verdict.ratio < 0.75


def test_a_lane_that_is_slow_only_at_long_prompts_is_named_by_its_size() -> None:
    lane = SimulatedLane(
        lambda age, generation, size: 20.0 if size == 3072 and generation == 4 and age > 1800 else 60.0,
        noise=QUIET,
    )
    for _ in range(3):
        lane.live(3600)
        lane.new_worker()
    lane.live(3 * 3600)
    assert len(lane.convictions) == 1
    _, _, verdict = lane.convictions[0]
    assert "3072 prompt tokens" in verdict.reason
    assert dict(verdict.by_prompt_tokens)[256] == pytest.approx(60, rel=0.1)
    assert verdict.baseline_tok_s == pytest.approx(60, rel=0.1)


def test_a_worker_that_was_never_fast_at_long_prompts_has_not_aged_there() -> None:
    judge = learned()
    for _ in range(30):
        judge.observe(sample(60.0))
        verdict = judge.observe(sample(20.0, size=3072))
    assert (verdict.status, verdict.wants_runs) == (Status.HEALTHY, 0)


def test_while_a_long_prompt_is_in_doubt_the_smallest_is_run_in_turn_and_convicts_first() -> None:
    judge = learned()
    for size in (256, 3072):
        judge.observe(sample(60.0, size=size))
    sizes = []
    verdict = judge.observe(sample(20.0, size=3072))
    while verdict.status is not Status.DEGRADED:
        purpose = Purpose.BURST if verdict.wants_runs else Purpose.ROUTINE
        sizes.append(verdict.wants_size or 3072)
        verdict = judge.observe(sample(20.0, size=sizes[-1], purpose=purpose))
    assert sizes == [3072] * 4 + [256] * 10
    assert verdict.decode_tok_s == 20.0
    assert "at 256 prompt tokens" in verdict.reason


def test_an_empty_burst_budget_does_not_blind_it() -> None:
    judge = learned()
    judge.terms = replace(judge.terms, canary=CanaryTerms(burst_budget=1e-9))
    judge.observe(replace(sample(60.0, purpose=Purpose.BURST), took_s=100.0))
    for at in range(1, 9):
        verdict = judge.observe(sample(20.0, at=at * 300.0))
        assert verdict.wants_runs == 0
    assert verdict.status is Status.DEGRADED


def test_a_worker_that_recovers_is_healthy_again() -> None:
    judge = learned()
    for _ in range(16):
        judge.observe(sample(20.0))
    assert judge.verdict.status is Status.DEGRADED
    for _ in range(4):
        judge.observe(sample(60.0))
    for _ in range(3):
        judge.observe(sample(60.0))
    assert judge.verdict.status is Status.HEALTHY


def test_in_between_it_stays_what_it_was() -> None:
    judge = learned()
    border = 60.0 * 0.86
    for _ in range(5):
        judge.observe(sample(60.0))
    for at in range(10):
        judge.observe(sample(border, at=at * 300.0, purpose=Purpose.VERIFY))
    assert judge.verdict.status is Status.HEALTHY
    for _ in range(5):
        judge.observe(sample(32.0))
        while judge.verdict.wants_runs:
            judge.observe(sample(32.0, purpose=Purpose.BURST))
        if judge.verdict.status is Status.SUSPECT:
            break
    for _ in range(5):
        judge.observe(sample(border, purpose=Purpose.VERIFY))
    assert judge.verdict.status is Status.SUSPECT


# ---- what it says ----


def test_a_verdict_carries_its_evidence() -> None:
    judge = learned()
    rates = [20.0, 21.0, 19.0, 22.0, 20.5, 20.0, 21.5, 20.0]
    for rate in rates:
        verdict = judge.observe(sample(rate))
    assert verdict.status is Status.DEGRADED
    assert verdict.samples == tuple(rates)
    assert verdict.ratio == pytest.approx(0.3375, abs=0.01)
    assert verdict.interval is not None
    assert verdict.interval[0] <= verdict.ratio <= verdict.interval[1] < 0.4
    assert verdict.confidence == pytest.approx(1 - 2**-8)
    assert verdict.decode_tok_s == pytest.approx(20.25)
    assert "8 of 8 runs" in verdict.reason


def test_without_a_baseline_it_says_so_and_convicts_nobody() -> None:
    judge = OnePageJudge.new(LaneTerms())
    judge.worker_replaced(1)
    for _ in range(50):
        verdict = judge.observe(sample(5.0))
    assert verdict.status is Status.UNKNOWN
    assert "no baseline" in verdict.reason
    assert judge.fresh_tok_s is None


def test_a_fresh_worker_is_asked_for_the_runs_the_baseline_lacks() -> None:
    judge = OnePageJudge.new(LaneTerms())
    judge.worker_replaced(1)
    verdict = judge.observe(replace(sample(50.0, size=3072), worker_age_s=30.0))
    assert (verdict.wants_runs, verdict.wants_size) == (BURST_RUNS, 3072)


def test_a_new_worker_begins_with_a_clean_slate() -> None:
    judge = learned()
    for _ in range(16):
        judge.observe(sample(20.0))
    judge.worker_replaced(2)
    assert judge.verdict.status is Status.UNKNOWN
    assert judge.observe(sample(20.0)).status is not Status.DEGRADED


# ---- what a recycle brought ----


@pytest.mark.parametrize(
    ("before", "after", "cure"),
    [
        ([20.0] * 8, [60.0] * 5, "cured"),
        ([20.0] * 8, [30.0, 60.0, 61.0, 59.0, 60.0], "cured"),
        ([20.0] * 8, [40.0] * 5, "partial"),
        ([20.0] * 8, [21.0] * 5, "futile"),
        ([], [60.0] * 5, "cured"),
        ([], [30.0] * 5, "partial"),
    ],
)
def test_a_recycle_is_measured_against_the_old_worker_and_the_baseline(
    before: list[float], after: list[float], cure: str
) -> None:
    assert learned().compare(before, after) == cure


@pytest.mark.parametrize(("after", "cure"), [(60.0, "cured"), (20.0, "futile"), (40.0, "partial")])
def test_a_worker_that_was_slow_at_long_prompts_is_compared_by_ratios(after: float, cure: str) -> None:
    judge = learned()
    judge.restore({"spawns": {"256": [[60.0] * 8] * 4, "3072": [[30.0] * 8] * 4}})
    for rate in (30.0, *[10.0] * 8):
        judge.observe(sample(rate, size=3072))
    assert judge.verdict.status is Status.DEGRADED
    judge.worker_replaced(2)
    assert judge.compare([10.0] * 8, [after] * 5) == cure


# ---- laws ----


@given(st.lists(st.floats(5.0, 100.0), min_size=1, max_size=60), st.floats(0.01, 100.0))
def test_rates_and_baseline_times_a_factor_change_no_status(rates: list[float], factor: float) -> None:
    judge, scaled = learned(), learned(60.0 * factor)
    for at, rate in enumerate(rates):
        one = judge.observe(sample(rate, at=at * 300.0))
        other = scaled.observe(sample(rate * factor, at=at * 300.0))
        if all(abs(value / 60.0 - limit) > 1e-6 for value in rates for limit in (0.5, 1 / 1.5)):
            assert (one.status, one.wants_runs) == (other.status, other.wants_runs)


@given(st.lists(st.floats(55.0, 80.0), max_size=200))
def test_rates_at_the_baseline_are_healthy_for_ever(rates: list[float]) -> None:
    judge = learned()
    for at, rate in enumerate(rates):
        verdict = judge.observe(sample(rate, at=at * 300.0))
        assert (verdict.status, verdict.wants_runs) == (Status.HEALTHY, 0)


def test_what_it_has_learned_goes_through_json_and_nothing_else_does() -> None:
    judge = learned()
    for _ in range(16):
        judge.observe(sample(20.0))
    again = OnePageJudge.new(LaneTerms())
    again.restore(json.loads(json.dumps(judge.to_json())))
    assert again.fresh_tok_s == pytest.approx(60.0)
    assert again.is_baseline_full
    assert again.verdict.status is Status.UNKNOWN
    again.reset()
    assert again.fresh_tok_s is None
    assert again.baseline_summary()["quality"] == "none"
