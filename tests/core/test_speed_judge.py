from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.core.samples import Purpose, Sample, Status, Verdict, Void
from supervisor.core.speed.detector import FIRST_BURST
from supervisor.core.speed.judge import Judge
from supervisor.core.speed.speed_judge import FILLING_RUNS, SpeedJudge, observations_a_year
from supervisor.core.terms import CanaryTerms, LaneTerms
from tests.core.simulated_lane import Noise, SimulatedLane

DAY = 86400.0
QUIET = Noise(spread=0.02, half_rate_share=0.0)


def sample(rate: float | None, *, size: int = 256, at: float = 0.0, purpose: Purpose = Purpose.ROUTINE) -> Sample:
    return Sample(at, at, 1, size, purpose, rate, None if rate else Void.CLIENT_ARRIVED, worker_age_s=9e9)


def learned(fresh: float = 60.0, sizes: tuple[int, ...] = (256, 3072)) -> SpeedJudge:
    """A judge with a full baseline, before the first run of a worker's life."""
    judge: Judge = SpeedJudge.new(LaneTerms())
    judge.restore({"spawns": {str(size): [[fresh] * 8] * 4 for size in sizes}})
    judge.worker_replaced(1)
    assert isinstance(judge, SpeedJudge)
    return judge


def visit(judge: SpeedJudge, rate: float, *, size: int = 256, at: float = 0.0) -> Verdict:
    """A run, and the burst it may lead to, all at one rate."""
    verdict = judge.observe(sample(rate, size=size, at=at))
    while verdict.wants_runs:
        verdict = judge.observe(sample(rate, size=size, at=at, purpose=Purpose.BURST))
    return verdict


def convicted(rate: float = 20.0, *, size: int = 256) -> SpeedJudge:
    judge = learned()
    for at in range(20):
        if visit(judge, rate, size=size, at=at * 300.0).status is Status.DEGRADED:
            return judge
    raise AssertionError(judge.verdict)


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
    assert judge.verdict.wants_runs == FIRST_BURST
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
    assert (runs, judge.verdict.status) == (FIRST_BURST, Status.HEALTHY)


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


def test_an_empty_burst_budget_does_not_blind_it() -> None:
    judge = learned()
    judge.terms = replace(judge.terms, canary=CanaryTerms(burst_budget=1e-9))
    judge.observe(replace(sample(60.0, purpose=Purpose.BURST), took_s=100.0))
    for at in range(1, 16):
        verdict = visit(judge, 20.0, at=at * 300.0)
        if verdict.status is Status.DEGRADED:
            break
    assert verdict.status is Status.DEGRADED


@pytest.mark.parametrize("size", [256, 3072])
def test_a_slowdown_at_one_size_alone_convicts_at_that_size(size: int) -> None:
    judge = learned()
    for at in range(60):
        other = 256 if size == 3072 else 3072
        visit(judge, 60.0, size=other, at=at * 900.0)
        if visit(judge, 38.0, size=size, at=at * 900.0 + 300).status is Status.DEGRADED:
            break
    assert (judge.verdict.status, judge.verdict.prompt_tokens) == (Status.DEGRADED, size)
    assert judge.verdict.decode_tok_s == (38.0 if size == 256 else 60.0)


def test_a_worker_that_recovers_is_healthy_again() -> None:
    judge = convicted()
    for at in range(20, 26):
        judge.observe(sample(60.0, at=at * 300.0))
    assert judge.verdict.status is Status.HEALTHY


def test_a_last_look_that_finds_the_worker_well_begins_anew() -> None:
    judge = learned()
    for at in range(200):
        if judge.verdict.wants_soon and (judge.verdict.confidence or 0) > 1 - 1 / observations_a_year(CanaryTerms()):
            break
        visit(judge, 36.0, at=at * 300.0)
    assert judge.verdict.status is Status.SUSPECT
    verdict = visit(judge, 60.0, at=200 * 300.0)
    assert (verdict.status, verdict.confidence, verdict.wants_soon) == (Status.HEALTHY, 0.0, False)


# ---- what it says ----


def test_a_verdict_carries_its_evidence() -> None:
    judge = convicted()
    verdict = judge.verdict
    assert verdict.samples == (20.0,) * 8
    assert verdict.ratio == pytest.approx(1 / 3, abs=0.01)
    assert verdict.interval is not None
    assert verdict.interval[0] <= verdict.ratio <= verdict.interval[1] < 0.4
    assert verdict.confidence is not None
    assert 0.9 < verdict.confidence < 1
    assert verdict.decode_tok_s == pytest.approx(20)
    assert verdict.baseline_tok_s == pytest.approx(60)
    assert "20.0 tok/s at 256 prompt tokens, 33 % of a fresh worker's 60.0" in verdict.reason


def test_without_a_baseline_it_says_so_and_convicts_nobody() -> None:
    judge = SpeedJudge.new(LaneTerms())
    judge.worker_replaced(1)
    for _ in range(50):
        verdict = judge.observe(sample(5.0))
    assert verdict.status is Status.UNKNOWN
    assert "no baseline" in verdict.reason
    assert judge.fresh_tok_s is None


def test_a_fresh_worker_is_asked_for_the_runs_the_baseline_lacks() -> None:
    judge = SpeedJudge.new(LaneTerms())
    judge.worker_replaced(1)
    verdict = judge.observe(replace(sample(50.0, size=3072), worker_age_s=30.0))
    assert (verdict.wants_runs, verdict.wants_size) == (FILLING_RUNS, 3072)


def test_a_new_worker_begins_with_a_clean_slate() -> None:
    judge = convicted()
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
    verdict = Verdict(Status.DEGRADED, "slow", samples=tuple(before), prompt_tokens=256, baseline_tok_s=60.0)
    assert learned().compare(verdict, {256: after}) == cure


@pytest.mark.parametrize(("after", "cure"), [(60.0, "cured"), (20.0, "futile"), (40.0, "partial")])
def test_a_worker_that_was_slow_at_long_prompts_is_compared_at_long_prompts(after: float, cure: str) -> None:
    judge = convicted(size=3072)
    before = judge.verdict
    judge.worker_replaced(2)
    assert judge.compare(before, {256: [60.0] * 5, 3072: [after] * 5}) == cure


@pytest.mark.parametrize(("after", "cure"), [(60.0, "cured"), (20.0, "futile"), (40.0, "partial")])
def test_where_the_new_worker_was_not_run_at_that_size_it_is_compared_by_ratios(after: float, cure: str) -> None:
    judge = convicted(size=3072)
    before = judge.verdict
    judge.worker_replaced(2)
    assert judge.compare(before, {256: [after] * 5}) == cure


def test_anchored_anew_fresh_means_what_the_machine_has_now() -> None:
    judge = convicted()
    assert judge.anchor_anew([20.0] * 3) == ""
    assert "20.0 tok/s" in judge.anchor_anew([20.0] * 5)
    assert judge.fresh_tok_s == pytest.approx(20)
    assert visit(judge, 20.0).status is Status.HEALTHY


# ---- laws ----


RATES = st.lists(st.tuples(st.floats(5.0, 100.0), st.sampled_from([256, 3072])), min_size=1, max_size=60)


@given(RATES, st.sampled_from([0.25, 0.5, 2.0, 1024.0]))
def test_rates_and_baseline_times_a_factor_change_nothing(rates: list[tuple[float, int]], factor: float) -> None:
    judge, scaled = learned(), learned(60.0 * factor)
    for at, (rate, size) in enumerate(rates):
        one = visit(judge, rate, size=size, at=at * 300.0)
        other = visit(scaled, rate * factor, size=size, at=at * 300.0)
        if all(abs(value / 60.0 - limit) > 1e-6 for value, _ in rates for limit in (0.5, 0.89, 0.95, 1 / 1.5)):
            assert (one.status, one.wants_size, one.wants_soon) == (other.status, other.wants_size, other.wants_soon)
            assert one.ratio == pytest.approx(other.ratio)
            assert one.confidence == pytest.approx(other.confidence, abs=1e-6)


@given(RATES)
def test_which_size_is_called_which_changes_nothing(rates: list[tuple[float, int]]) -> None:
    judge, swapped = learned(), learned()
    for at, (rate, size) in enumerate(rates):
        one = visit(judge, rate, size=size, at=at * 300.0)
        other = visit(swapped, rate, size=256 if size == 3072 else 3072, at=at * 300.0)
        assert (one.status, one.ratio) == (other.status, other.ratio)
        assert one.confidence == pytest.approx(other.confidence)


@given(RATES, st.integers(0, 59))
def test_void_runs_in_between_change_nothing(rates: list[tuple[float, int]], void_at: int) -> None:
    judge, disturbed = learned(), learned()
    for at, (rate, size) in enumerate(rates):
        if at == void_at:
            disturbed.observe(sample(None, size=size, at=at * 300.0))
        assert visit(judge, rate, size=size, at=at * 300.0) == visit(disturbed, rate, size=size, at=at * 300.0)


@given(st.lists(st.floats(0.01, 30.0), min_size=1, max_size=8))
def test_no_conviction_from_fewer_than_eight_runs(rates: list[float]) -> None:
    judge = learned()
    for rate in rates[:7]:
        purpose = Purpose.BURST if judge.verdict.wants_runs else Purpose.ROUTINE
        assert judge.observe(sample(rate, purpose=purpose)).status is not Status.DEGRADED


@given(st.lists(st.floats(60.0, 80.0), max_size=200))
def test_rates_at_the_baseline_are_healthy_for_ever(rates: list[float]) -> None:
    judge = learned()
    for at, rate in enumerate(rates):
        verdict = judge.observe(sample(rate, at=at * 300.0))
        assert (verdict.status, verdict.wants_runs) == (Status.HEALTHY, 0)


def test_what_it_has_learned_goes_through_json_and_nothing_else_does() -> None:
    judge = learned()
    for _ in range(16):
        judge.observe(sample(20.0))
    again = SpeedJudge.new(LaneTerms())
    again.restore(json.loads(json.dumps(judge.to_json())))
    assert again.fresh_tok_s == pytest.approx(60.0)
    assert again.is_baseline_full
    assert again.verdict.status is Status.UNKNOWN
    again.reset()
    assert again.fresh_tok_s is None
    assert again.baseline_summary()["quality"] == "none"
