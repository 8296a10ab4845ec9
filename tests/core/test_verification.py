"""What a recycle brought is measured where the worker was slow; a worker that came up slow is tried again."""

from __future__ import annotations

import pytest

from supervisor.core.account.record import Outcome
from supervisor.core.lane import events as ev
from supervisor.core.terms import LaneTerms, RecycleTerms, Replace, Trigger
from tests.core.stage import Stage

LONG = 3072
EAGER = RecycleTerms(min_uptime_s=0.0, wait_idle_s=60.0, max_per_hour=99, max_per_day=99)
IN_PLACE = LaneTerms(recycle=EAGER)
BESIDE = LaneTerms(recycle=EAGER, replace=Replace.OVERLAP)


def with_full_baseline(terms: LaneTerms) -> Stage:
    """Three workers, an hour each, and a fourth that serves."""
    stage = Stage(terms)
    stage.start()
    for _ in range(3):
        stage.run(3600.0)
        stage.tell(ev.RecycleAsked(stage.at))
        stage.run(120.0)
    stage.run(1200.0)
    stage.records.clear()
    return stage


def generation(stage: Stage) -> int:
    return stage.lane.body.workers.last_generation


@pytest.mark.parametrize("terms", [IN_PLACE, BESIDE])
@pytest.mark.parametrize(("after", "outcome"), [(60.0, Outcome.CURED), (20.0, Outcome.FUTILE)])
def test_a_worker_slow_only_at_a_larger_size_is_verified_at_that_size(
    terms: LaneTerms, after: float, outcome: Outcome
) -> None:
    stage = with_full_baseline(terms)
    old = generation(stage)
    stage.world.tok_s_at = {(old, LONG): 20.0, (old + 1, LONG): after}
    stage.run(4 * 3600.0)
    record = stage.records[0]
    assert (record.trigger, record.outcome) == (Trigger.DEGRADED, outcome)
    assert f"at {LONG} prompt tokens" in record.reason
    assert record.before.decode_tok_s == 60.0
    assert record.after.decode_tok_s == 60.0
    assert record.after.samples == (60.0,) * 5


def test_a_worker_that_came_up_slow_is_tried_again_and_said_so() -> None:
    stage = with_full_baseline(IN_PLACE)
    unlucky = generation(stage) + 1
    stage.world.tok_s_of = {unlucky: 45.0}
    stage.kill_worker()
    stage.run(600.0)
    assert [(record.trigger, record.outcome) for record in stage.records] == [
        (Trigger.CRASHED, Outcome.CURED),
        (Trigger.BAD_SPAWN, Outcome.CURED),
    ]
    assert generation(stage) == unlucky + 1


def test_after_two_more_tries_a_slow_one_is_the_best_to_be_had() -> None:
    stage = with_full_baseline(IN_PLACE)
    unlucky = generation(stage) + 1
    stage.world.tok_s = 45.0
    stage.kill_worker()
    stage.run(4 * 3600.0)
    assert generation(stage) == unlucky + 2
    assert [record.outcome for record in stage.records][-1] is Outcome.BAD_SPAWN
    assert stage.lane.state == "serving"


def test_after_three_recycles_in_vain_fresh_means_what_the_machine_has_now() -> None:
    stage = with_full_baseline(IN_PLACE)
    stage.world.tok_s = 25.0
    stage.world.tok_s_of.clear()
    stage.run(36 * 3600.0)
    assert [record.outcome for record in stage.records] == [Outcome.FUTILE] * 3
    assert "the machine has changed" in stage.records[-1].next
    assert stage.lane.organs.judge.fresh_tok_s == pytest.approx(25.0, rel=0.02)
    assert stage.lane.state == "serving"
