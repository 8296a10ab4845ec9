"""A lane that reads slowly and writes well is named as such, and not replaced for it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from supervisor.core.samples import Purpose, Sample, Status, Void
from supervisor.core.speed.cadence import RARE_EVERY, Cadence
from supervisor.core.speed.lane_judge import LaneJudge
from supervisor.core.terms import CanaryTerms, LaneTerms

TERMS = LaneTerms()
DAY = 86400.0


class Reader:
    """A lane whose worker writes at 60 tok/s and reads at a rate that a test sets, probed by the real cadence."""

    def __init__(self) -> None:
        self.judge = LaneJudge(TERMS)
        self.cadence = Cadence(TERMS.canary)
        self.at = 0.0
        self.reads_at = 500.0
        self.writes_at = 60.0
        self.nonces = self.runs = 0
        for generation in range(1, 5):
            self.judge.worker_replaced(generation)
            for _ in range(5):
                self.take(256, Purpose.VERIFY, has_nonce=True, age_s=10.0)

    def take(self, size: int, purpose: Purpose, *, has_nonce: bool, age_s: float = 9e9) -> None:
        ttft_s = size / self.reads_at if has_nonce else 0.05
        prefill = self.reads_at if has_nonce and ttft_s >= 0.2 else None
        sample = Sample(
            self.at, self.at, 1, size, purpose, self.writes_at, ttft_s=ttft_s, prefill_tok_s=prefill, worker_age_s=age_s
        )
        sample = replace(sample, took_s=1.0, has_nonce=has_nonce)
        self.cadence.took(sample)
        self.cadence.heed(self.judge.observe(sample))
        self.nonces += has_nonce
        self.runs += 1

    def live(self, seconds: float) -> None:
        until, purpose = self.at + seconds, Purpose.ROUTINE
        while self.at < until:
            self.at += 1.0 if purpose is Purpose.BURST else self.cadence.due_in(self.at)
            size, has_nonce = self.cadence.plan(self.at)
            self.take(size, purpose, has_nonce=has_nonce)
            purpose = Purpose.BURST if self.judge.verdict.wants_runs else Purpose.ROUTINE


def test_a_worker_that_reads_and_writes_as_ever_is_healthy_in_both_and_has_a_nonce_in_a_twelfth_of_its_runs() -> None:
    lane = Reader()
    lane.nonces = lane.runs = 0
    lane.live(DAY)
    verdict = lane.judge.verdict
    assert verdict.prefill is not None
    assert (verdict.status, verdict.prefill.status) == (Status.HEALTHY, Status.HEALTHY)
    assert lane.nonces == pytest.approx(lane.runs / RARE_EVERY, rel=0.1)


def test_one_that_reads_slowly_and_writes_well_is_named_and_not_convicted() -> None:
    lane = Reader()
    lane.reads_at = 150.0
    lane.live(DAY / 4)
    verdict = lane.judge.verdict
    assert verdict.prefill is not None
    assert verdict.prefill.status is Status.DEGRADED
    assert verdict.prefill.ratio == pytest.approx(0.3, rel=0.05)
    assert (verdict.status, verdict.ratio) == (Status.HEALTHY, pytest.approx(1.0))
    assert "prefill is slow: 150.0 tok/s at 256 prompt tokens" in verdict.reason


def test_one_that_writes_slowly_and_reads_well_is_convicted_as_ever() -> None:
    lane = Reader()
    lane.writes_at = 18.0
    lane.live(DAY / 4)
    verdict = lane.judge.verdict
    assert verdict.status is Status.DEGRADED
    assert verdict.prefill is not None
    assert verdict.prefill.status is Status.HEALTHY


def test_reading_that_is_well_again_is_no_longer_named() -> None:
    lane = Reader()
    lane.reads_at = 150.0
    lane.live(DAY / 4)
    lane.reads_at = 500.0
    lane.live(DAY / 2)
    assert "prefill" not in lane.judge.verdict.reason


def test_a_closer_look_that_finds_prompts_read_at_once_is_a_good_one() -> None:
    lane = Reader()
    lane.reads_at = 150.0
    while lane.judge.reading.wants_runs == 0:
        lane.take(256, Purpose.ROUTINE, has_nonce=True)
    assert lane.judge.verdict.wants_nonce
    assert lane.cadence.plan(lane.at) == (256, True)
    lane.reads_at = 5000.0
    for _ in range(3):
        lane.take(256, Purpose.BURST, has_nonce=True)
    assert lane.judge.verdict.wants_runs == 0


def test_where_the_smallest_prompt_is_read_at_once_a_larger_one_is_read() -> None:
    cadence = Cadence(CanaryTerms())
    assert cadence.plan(0.0) == (256, True)
    sample = Sample(0.0, 0.0, 1, 256, Purpose.ROUTINE, 60.0, ttft_s=0.05, has_nonce=True)
    cadence.took(sample)
    for turn in range(1, RARE_EVERY):
        assert not cadence.plan(float(turn))[1]
        cadence.took(replace(sample, at=float(turn), has_nonce=False))
    assert cadence.plan(float(RARE_EVERY)) == (3072, True)


def test_what_is_known_of_reading_outlives_the_daemon() -> None:
    lane, again = Reader(), LaneJudge(TERMS)
    again.restore(json.loads(json.dumps(lane.judge.to_json())))
    assert again.is_reading_known
    assert again.baseline_summary()["prefill"]["tok_s"] == pytest.approx(500.0)
    again.reset()
    assert again.baseline_summary()["prefill"]["tok_s"] is None


@settings(deadline=None)
@given(st.lists(st.floats(1.0, 5000.0), max_size=60))
def test_however_slowly_it_reads_that_alone_never_convicts(rates: list[float]) -> None:
    lane = Reader()
    for rate in rates:
        lane.reads_at = rate
        purpose = Purpose.BURST if lane.judge.verdict.wants_runs else Purpose.ROUTINE
        lane.take(256, purpose, has_nonce=True)
        assert lane.judge.verdict.status is Status.HEALTHY


@settings(deadline=None)
@given(st.sampled_from(list(Void)), st.floats(1.0, 5000.0))
def test_a_void_run_tells_nothing_of_reading_either(void: Void, rate: float) -> None:
    lane = Reader()
    before = lane.judge.to_json()
    lane.judge.observe(Sample(0.0, 0.0, 1, 256, Purpose.ROUTINE, None, void, prefill_tok_s=rate))
    assert lane.judge.to_json() == before
