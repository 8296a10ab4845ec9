"""A lane whose workers age alike learns at which age they are best replaced, and does it where nobody would notice."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from supervisor.core.account.record import Outcome, RecycleRecord
from supervisor.core.lane import events as ev
from supervisor.core.speed.age_curve import LIVES_THAT_TEACH, LIVES_TO_A_LONE_ONE
from supervisor.core.speed.ageing import Ageing
from supervisor.core.states import LaneState
from supervisor.core.terms import LaneTerms, RecycleTerms, Trigger
from tests.core.stage import FRESH_TOK_S, Stage, World

STEP_S = 100.0
HALVED_AFTER_S = 7200.0
LEARNS = RecycleTerms(learns=True, max_per_hour=99, max_per_day=999)
LIFE_S = 6000.0
EVERY_S = 300.0
START_S = 90.0


def stage_of(recycle: RecycleTerms = LEARNS) -> Stage:
    stage = Stage(LaneTerms(recycle=recycle), World(start_s=START_S))
    stage.start()
    stage.run(2 * START_S)
    return stage


def pass_time(stage: Stage, seconds: float, *, idle_s: float = 60.0) -> None:
    """Each worker loses half of its speed in two hours."""
    until = stage.at + seconds
    while stage.at < until:
        stage.run(STEP_S)
        active = stage.lane.body.workers.active
        if active is None:
            continue
        lost = 0.5 * min(active.uptime_s(stage.at) / HALVED_AFTER_S, 1.0)
        stage.world.tok_s_of[active.generation] = FRESH_TOK_S * (1 - lost)
        stage.tell(ev.WorkerMeasured(stage.at, active.generation, 10**9, 1, 64, idle_s=idle_s))


def by_age(stage: Stage) -> list[RecycleRecord]:
    return [record for record in stage.records if record.trigger is Trigger.AGE]


def test_after_three_slow_lives_a_worker_is_replaced_at_the_age_at_which_that_paid_best() -> None:
    stage = stage_of()
    pass_time(stage, 5 * LIFE_S)
    slow = [record for record in stage.records if record.trigger is Trigger.DEGRADED]
    aged = by_age(stage)
    assert len(slow) == LIVES_THAT_TEACH
    assert re.fullmatch(r"at the age of \d+ min, at which replacing it has paid best in 3 lives", aged[0].reason)
    assert aged[0].outcome is Outcome.CURED
    assert aged[0].worker.uptime_s < 0.5 * slow[-1].worker.uptime_s


def test_without_learning_no_worker_is_replaced_for_its_age() -> None:
    stage = stage_of(replace(LEARNS, learns=False))
    pass_time(stage, 5 * LIFE_S)
    assert len(stage.records) > LIVES_THAT_TEACH
    assert not by_age(stage)


def test_a_lane_that_is_busy_replaces_none_for_its_age_until_it_is_idle() -> None:
    stage = stage_of()
    pass_time(stage, 3.5 * LIFE_S)
    before = len(by_age(stage))
    pass_time(stage, 0.5 * LIFE_S, idle_s=0.0)
    assert len(by_age(stage)) == before
    pass_time(stage, 0.5 * LIFE_S)
    assert len(by_age(stage)) > before


def test_an_idle_moment_that_is_gone_before_the_gate_closes_leaves_the_worker_in_peace() -> None:
    stage = stage_of()
    pass_time(stage, 3.2 * LIFE_S)
    stage.world.slot_s = 30.0
    before = len(by_age(stage))
    while stage.lane.organs.recycler.under_way is None:
        pass_time(stage, STEP_S)
        if stage.lane.organs.recycler.is_about(Trigger.AGE):
            assert stage.begin_request()
    stage.run(2 * LEARNS.wait_idle_s)
    (aborted,) = by_age(stage)[before:]
    assert aborted.outcome is Outcome.ABORTED
    assert stage.cut == 0
    assert stage.lane.state is LaneState.SERVING


@pytest.mark.parametrize("terms", [replace(LEARNS, is_advised_only=True), replace(LEARNS, is_off=True)])
def test_a_lane_that_may_not_act_alone_only_says_that_the_best_age_is_reached(terms: RecycleTerms) -> None:
    stage = stage_of()
    pass_time(stage, 3.2 * LIFE_S)
    stage.tell(ev.TermsChanged(stage.at, LaneTerms(recycle=terms), needs_worker=False))
    pass_time(stage, STEP_S)
    count = len(stage.records)
    pass_time(stage, 0.6 * LIFE_S)
    assert len(stage.records) == count
    assert "it has reached its best age; not recycled:" in stage.lane.body.objection


def test_no_worker_is_replaced_for_its_age_outside_the_quiet_hours() -> None:
    stage = stage_of()
    pass_time(stage, 3.2 * LIFE_S)
    stage.tell(ev.WindowChanged(stage.at, is_open=False))
    pass_time(stage, STEP_S)
    count = len(stage.records)
    pass_time(stage, LIFE_S)
    assert len(stage.records) == count


def test_one_life_in_eight_is_left_alone() -> None:
    ageing = Ageing(EVERY_S)
    ages = []
    for _ in range(LIVES_THAT_TEACH + 2 * LIVES_TO_A_LONE_ONE):
        ages.append(ageing.best_age_s(60.0, 0.0))
        for probe in range(30):
            ageing.measured((probe + 0.5) * EVERY_S, 1 - 0.02 * probe)
        ageing.life_ended(is_slow=True)
    assert ages[:LIVES_THAT_TEACH] == [None] * LIVES_THAT_TEACH
    assert ages[LIVES_THAT_TEACH:].count(None) == 2


def test_what_was_learned_outlives_the_daemon() -> None:
    stage = stage_of()
    pass_time(stage, 3.5 * LIFE_S)
    kept = stage.lane.organs.judge.to_json()
    later = stage_of()
    later.tell(ev.BaselineRecalled(later.at, "the same", kept))
    pass_time(later, 0.5 * LIFE_S)
    assert [record.trigger for record in later.records][:1] == [Trigger.AGE]


def test_another_fingerprint_carries_no_age_over() -> None:
    stage = stage_of()
    pass_time(stage, 3.5 * LIFE_S)
    stage.tell(ev.BaselineRecalled(stage.at, "another", None))
    assert stage.lane.organs.judge.baseline_summary()["ageing"]["lives"] == 0
