"""Laws of the judge over any runs: what outlives what, what convicts nobody, and what an adversary can do."""

from __future__ import annotations

import json
import math
import random
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from supervisor.core.recycle.policy import RecycleAllowance
from supervisor.core.samples import Purpose, Sample, Status
from supervisor.core.speed.burst_budget import MOST_BURSTS, BurstBudget
from supervisor.core.speed.lane_judge import LaneJudge
from supervisor.core.speed.mixture import HARMLESS, SLOW_RUNS, Mixture, factors, offsets
from supervisor.core.speed.speed_judge import observations_a_year
from supervisor.core.states import LaneState
from supervisor.core.terms import CanaryTerms, LaneTerms, RecycleTerms
from tests.core.stage import FRESH_TOK_S, Stage

RUNS = st.lists(st.tuples(st.floats(5.0, 100.0), st.sampled_from([256, 3072]), st.booleans()), min_size=1, max_size=40)
"""Rate, prompt size, and whether it is read with a nonce."""

FRESH_RUNS = {"spawns": {"256": [[60.0] * 8] * 4, "3072": [[60.0] * 8] * 4}}


def judge_of(document: dict[str, object], generation: int = 1) -> LaneJudge:
    judge = LaneJudge(LaneTerms())
    judge.restore(json.loads(json.dumps(document)))
    judge.worker_replaced(generation)
    return judge


def feed(judge: LaneJudge, runs: list[tuple[float, int, bool]], begin: float = 0.0) -> None:
    for index, (rate, size, has_nonce) in enumerate(runs):
        purpose = Purpose.BURST if judge.verdict.wants_runs else Purpose.ROUTINE
        sample = Sample(begin + index, 0.0, 1, size, purpose, rate, took_s=1.0, worker_age_s=9e9)
        judge.observe(replace(sample, prefill_tok_s=8 * rate if has_nonce else None, has_nonce=has_nonce))


@settings(deadline=None)
@given(RUNS, RUNS)
def test_state_goes_through_json_in_mid_burst_unharmed(
    before: list[tuple[float, int, bool]], after: list[tuple[float, int, bool]]
) -> None:
    judge = judge_of({**FRESH_RUNS, "prefill": {"spawns": {"256": [[480.0] * 8] * 4}}})
    feed(judge, before)
    document, verdict = judge.to_json(), judge.verdict
    again = judge_of(document, generation=2)
    assert again.to_json() == document
    assert judge.verdict is verdict, "to be written down changes nothing"
    judge.worker_replaced(2)
    for one in (judge, again):
        feed(one, after, begin=1000.0)
    assert again.verdict.status is judge.verdict.status
    assert again.verdict.ratio == judge.verdict.ratio
    assert again.verdict.confidence == judge.verdict.confidence


@settings(deadline=None)
@given(RUNS)
def test_a_changed_fingerprint_carries_nothing_over(runs: list[tuple[float, int, bool]]) -> None:
    judge = judge_of({**FRESH_RUNS, "prefill": FRESH_RUNS})
    feed(judge, runs)
    judge.reset()
    document = judge.to_json()
    empty = LaneJudge(LaneTerms()).to_json()
    for one in (document, document["prefill"], empty, empty["prefill"]):
        one.pop("bursts")
    assert document == empty
    assert judge.verdict.status is Status.UNKNOWN


def test_what_bursts_have_cost_is_not_forgotten_with_the_daemon_and_is_no_present_either() -> None:
    budget = BurstBudget(0.02, 300.0)
    for _ in range(MOST_BURSTS):
        budget.begun()
        budget.spent(1.0)
    again = BurstBudget(0.02, 300.0)
    again.restore(json.loads(json.dumps(budget.to_json())))
    assert not again.can_afford(1e6)
    again.restore({"savings_s": 1e9, "left": 1e9})
    assert not again.can_afford(1e6)
    for strange in ({}, {"left": "many"}, {"savings_s": None, "left": True}):
        BurstBudget(0.02, 300.0).restore(strange)


def test_an_adversary_within_the_contamination_gains_nothing() -> None:
    """He sees R, shifts the mean by anything harmless, and makes one run in twenty as slow as he likes."""
    chance, bar, times = random.Random(7), 200, []
    taken_off = offsets(0.15, SLOW_RUNS)
    for trial in range(200):
        mixture, runs = Mixture(), 0
        while mixture.value < bar and runs < 6 * bar:
            is_pushed = mixture.value > trial / 10
            score = chance.gauss(HARMLESS / 0.15 if is_pushed else chance.uniform(-1.0, HARMLESS / 0.15), 1.0)
            if is_pushed and chance.random() < SLOW_RUNS:
                score = chance.choice([2.0, 5.0, 1e9])
            mixture.feed(factors(score, taken_off))
            runs += 1
        times.append(runs)
    assert sum(times) / len(times) > bar


@given(st.integers(1, 12))
def test_futile_recycles_double_the_hold_off_from_half_an_hour_and_anchor_anew_only_each_third_time(n: int) -> None:
    allowance, held_off = RecycleAllowance(), []
    for _ in range(n):
        held_off.append(allowance.brought_nothing(0.0))
        assert allowance.is_time_to_anchor == (len(held_off) % 3 == 0)
    assert held_off == [min(1800.0 * 2**level, 86400.0) for level in range(n)]
    allowance.cured()
    assert not allowance.is_time_to_anchor


def test_a_last_look_that_finds_the_lane_well_resumes_it_with_no_process_touched() -> None:
    stage = Stage(LaneTerms(recycle=RecycleTerms(min_uptime_s=0.0)))
    stage.start()
    stage.run(3600.0)
    certain = 1 - 1 / observations_a_year(CanaryTerms())
    stage.world.tok_s = 0.62 * FRESH_TOK_S
    for _ in range(100_000):
        stage.run(1.0)
        if (stage.lane.organs.judge.verdict.confidence or 0.0) >= certain or stage.records:
            break
    assert stage.records == [], "it was convicted before its last look"
    assert stage.lane.state is LaneState.SUSPECT
    stage.world.tok_s = FRESH_TOK_S
    stage.run(1800.0)
    assert stage.lane.state is LaneState.SERVING
    assert (stage.records, stage.most_alive, stage.alive) == ([], 1, {1})
    assert math.isclose(stage.lane.organs.judge.verdict.ratio or 0.0, 1.0, rel_tol=0.05)
