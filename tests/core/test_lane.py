"""One lane's life, told in scenarios: time is a number, the world is the stage's."""

from __future__ import annotations

from dataclasses import replace

import pytest

from supervisor.core.account.record import Outcome
from supervisor.core.lane import events as ev
from supervisor.core.recycle.replacement import Step
from supervisor.core.samples import Void
from supervisor.core.states import LaneState
from supervisor.core.terms import CanaryTerms, LaneTerms, RecycleTerms, Replace, Trigger, Wish
from supervisor.errors import ImpossibleEventError
from tests.core.stage import FRESH_TOK_S, Stage, World

S = LaneState
QUICK = LaneTerms(recycle=RecycleTerms(min_uptime_s=0.0, wait_idle_s=60.0, max_hold_s=60.0))
BESIDE = LaneTerms(replace=Replace.OVERLAP, recycle=RecycleTerms(min_uptime_s=0.0, wait_idle_s=60.0))
SLOW = FRESH_TOK_S / 3


def serving(terms: LaneTerms = QUICK, world: World | None = None) -> Stage:
    """A stage whose lane serves and has a baseline over three spawns."""
    stage = Stage(terms, world)
    stage.start()
    for _ in range(3):
        stage.tell(ev.RecycleAsked(stage.at))
        stage.run(200.0)
    stage.run(1200.0)
    assert stage.lane.state is S.SERVING
    stage.records.clear()
    stage.states.clear()
    stage.states.append(S.SERVING)
    return stage


def age(stage: Stage, rate: float = SLOW) -> None:
    """The active worker becomes slow; those after it are fresh."""
    generation = stage.lane.body.workers.last_generation
    stage.world.tok_s_of[generation] = rate


def test_a_lane_starts_measures_its_worker_and_then_opens() -> None:
    stage = Stage()
    stage.start()
    assert stage.states == [S.STOPPED, S.STARTING, S.WARMING, S.SERVING]
    assert stage.lane.organs.judge.fresh_tok_s == pytest.approx(FRESH_TOK_S)


@pytest.mark.parametrize("void", [Void.DEVICE_BUSY, Void.HOST_SLOW, Void.LANE_BUSY])
def test_a_worker_that_cannot_be_measured_serves_all_the_same_and_soon(void: Void) -> None:
    stage = Stage(world=World(void=void))
    stage.tell(ev.StartAsked(stage.at))
    stage.run(5.0)
    assert stage.lane.state is S.SERVING
    assert "not measured yet" in stage.lane.body.reason


def test_a_suspicion_is_dropped_when_what_the_lane_runs_changes() -> None:
    terms = replace(QUICK, canary=CanaryTerms(prompt_tokens=(256,)), recycle=RecycleTerms(is_off=True))
    stage = serving(terms)
    age(stage)
    stage.run(1200.0)
    assert stage.lane.state is S.SUSPECT
    stage.tell(ev.BaselineRecalled(stage.at, "other", None))
    assert stage.lane.state is S.SERVING
    stage.run(1200.0)
    assert (stage.lane.state, stage.records) == (S.SERVING, [])


def test_an_aged_worker_is_drained_and_replaced_and_the_record_says_what_it_brought() -> None:
    stage = serving(replace(QUICK, canary=CanaryTerms(prompt_tokens=(256,))))
    age(stage)
    stage.run(1200.0)
    assert stage.states == [S.SERVING, S.SUSPECT, S.DRAINING, S.STOPPING, S.STARTING, S.WARMING, S.SERVING]
    [record] = stage.records
    assert record.trigger is Trigger.DEGRADED
    assert record.outcome is Outcome.CURED
    assert record.before.decode_tok_s == pytest.approx(SLOW)
    assert record.before.ratio == pytest.approx(1 / 3, abs=0.01)
    assert record.after.decode_tok_s == pytest.approx(FRESH_TOK_S)
    assert len(record.after.samples) == 5
    assert 3.0 < record.downtime_s < 15.0
    assert stage.intents[-1].outcome is None
    assert stage.most_alive == 1


def test_beside_the_old_worker_the_new_one_proves_itself_first_and_there_is_no_downtime() -> None:
    stage = serving(BESIDE)
    age(stage)
    stage.run(1200.0)
    assert stage.states == [S.SERVING, S.SUSPECT, S.SERVING]
    [record] = stage.records
    assert record.replace is Replace.OVERLAP
    assert record.downtime_s == 0.0
    assert record.outcome is Outcome.CURED
    assert stage.most_alive == 2
    assert len(stage.alive) == 1


def test_a_new_worker_that_is_no_faster_is_thrown_away_and_recycling_held_off() -> None:
    stage = serving(BESIDE)
    stage.world.tok_s = SLOW
    stage.world.tok_s_of.clear()
    old = stage.gate_generation
    stage.run(1200.0)
    assert stage.records[0].outcome is Outcome.FUTILE
    assert stage.records[0].cause.kind == "host_slow"
    assert stage.gate_generation == old
    stage.run(300.0)
    assert len(stage.records) == 1
    assert "held off" in stage.lane.body.reason


def test_in_place_a_slow_host_costs_one_recycle_and_then_holds_off_longer_each_time() -> None:
    stage = serving()
    stage.world.tok_s = SLOW
    stage.run(3600.0)
    assert 1 <= len(stage.records) <= 2
    assert stage.records[0].outcome is Outcome.FUTILE
    stage.run(23 * 3600.0)
    assert len(stage.records) <= 6


def test_a_recycle_without_a_quiet_moment_cuts_nobody_and_is_aborted() -> None:
    stage = serving()
    assert stage.begin_request()
    generation = stage.gate_generation
    stage.tell(ev.RecycleAsked(stage.at))
    stage.run(600.0)
    assert [record.outcome for record in stage.records] == [Outcome.ABORTED]
    assert stage.lane.state is S.SERVING
    assert stage.gate_generation == generation
    assert stage.inflight[generation] == 1
    assert stage.cut == 0


def test_requests_in_flight_finish_before_their_worker_is_stopped() -> None:
    stage = serving()
    assert stage.begin_request()
    generation = stage.gate_generation
    stage.tell(ev.RecycleAsked(stage.at))
    stage.run(QUICK.recycle.wait_idle_s + 1.0)
    assert stage.lane.state is S.DRAINING
    assert generation in stage.alive
    stage.end_request(generation)
    stage.run(60.0)
    assert stage.lane.state is S.SERVING
    assert generation not in stage.alive
    assert stage.cut == 0


def test_now_alone_may_cut() -> None:
    stage = serving()
    assert stage.begin_request()
    stage.tell(ev.RecycleAsked(stage.at, is_now=True))
    stage.run(60.0)
    assert stage.cut == 1
    assert stage.records[-1].outcome is Outcome.REPLACED


def test_a_hung_worker_is_replaced_at_once_and_killed_only_after_its_patience() -> None:
    stage = serving()
    stage.world.ignores_term = True
    assert stage.begin_request()
    stage.tell(ev.WorkerHung(stage.at, stage.gate_generation, "no byte for 90 s"))
    assert stage.lane.state is S.STOPPING
    stage.run(29.0)
    assert stage.lane.state is S.STOPPING
    stage.world.ignores_term = False
    stage.run(60.0)
    assert stage.lane.state is S.SERVING
    [record] = stage.records
    assert (record.trigger, record.outcome) == (Trigger.HUNG, Outcome.CURED)
    assert record.stop.killed


def hung_in_a_proof(terms: LaneTerms) -> Stage:
    """A request in flight keeps the proof of a new worker waiting, and then the old one freezes."""
    stage = serving(terms)
    assert stage.begin_request()
    stage.tell(ev.RecycleAsked(stage.at))
    stage.run(4.0)
    assert stage.lane.organs.recycler.under_way
    assert stage.lane.organs.recycler.under_way.step is Step.PROVING
    stage.world.ignores_term = True
    stage.tell(ev.WorkerHung(stage.at, stage.gate_generation, "no byte for 90 s"))
    return stage


def test_a_worker_that_hangs_while_its_successor_waits_to_be_proved_is_cut_and_the_successor_steps_in() -> None:
    stage = hung_in_a_proof(BESIDE)
    old = stage.gate_generation
    assert stage.cut == 1
    assert stage.lane.state is S.WARMING
    stage.run(5.0)
    assert stage.lane.state is S.SERVING
    assert stage.gate_generation == old + 1
    [record] = stage.records
    assert (record.trigger, record.outcome, record.worker.generation) == (Trigger.HUNG, Outcome.CURED, old)
    assert 0.0 < record.downtime_s <= 5.0
    assert stage.alive == {old, old + 1}
    stage.run(60.0)
    assert stage.alive == {old + 1}, "killed after its patience"


def test_a_successor_does_not_step_in_for_a_worker_that_may_not_be_killed() -> None:
    stage = hung_in_a_proof(replace(BESIDE, may_kill=False))
    stage.run(60.0)
    assert stage.lane.state is S.BLOCKED
    assert "ignores its stop signal" in stage.lane.body.reason


def test_a_worker_that_may_not_be_killed_blocks_its_lane_in_plain_words_until_it_is_gone() -> None:
    stage = serving(LaneTerms(may_kill=False))
    stage.world.ignores_term = True
    stage.tell(ev.RecycleAsked(stage.at))
    stage.run(60.0)
    assert stage.lane.state is S.BLOCKED
    assert "ignores its stop signal" in stage.lane.body.reason
    assert stage.most_alive == 1
    [generation] = stage.alive
    stage.alive.clear()
    stage.tell(ev.WorkerExited(stage.at, generation, None, "SIGKILL"))
    stage.run(60.0)
    assert stage.lane.state is S.SERVING


def test_a_crashed_worker_is_started_again_after_a_pause_with_a_record() -> None:
    stage = serving()
    stage.kill_worker()
    assert stage.lane.state is S.BACKING_OFF
    stage.run(60.0)
    assert stage.lane.state is S.SERVING
    [record] = stage.records
    assert (record.trigger, record.outcome) == (Trigger.CRASHED, Outcome.CURED)


def test_a_crash_loop_ends_in_failed_and_a_person_gets_it_out() -> None:
    stage = Stage(QUICK, World(dies_at_start=True))
    stage.start()
    stage.run(600.0)
    assert stage.lane.state is S.FAILED
    stage.run(3600.0)
    assert stage.lane.state is S.FAILED
    stage.world.dies_at_start = False
    stage.start()
    assert stage.lane.state is S.SERVING


def test_a_start_beyond_its_deadline_is_tried_again_and_serves_once_it_can() -> None:
    stage = Stage(LaneTerms(start_timeout_s=20.0), World(never_ready=True))
    stage.start()
    stage.run(30.0)
    stage.world.never_ready = False
    stage.run(600.0)
    assert stage.lane.state is S.SERVING


@pytest.mark.parametrize("moment_s", [0.0, 0.5, 3.5, 60.0])
def test_a_lane_stopped_at_any_moment_stays_stopped(moment_s: float) -> None:
    stage = Stage(QUICK)
    stage.tell(ev.StartAsked(stage.at))
    stage.run(moment_s)
    stage.tell(ev.StopAsked(stage.at))
    stage.run(7200.0)
    assert stage.lane.state is S.STOPPED
    assert not stage.alive
    assert stage.lane.body.wish is Wish.STOPPED


def test_a_drained_lane_keeps_its_worker_and_refuses_until_it_is_resumed() -> None:
    stage = serving()
    stage.tell(ev.DrainAsked(stage.at))
    stage.run(1.0)
    assert stage.lane.state is S.DRAINED
    assert len(stage.alive) == 1
    assert not stage.begin_request()
    stage.tell(ev.ResumeAsked(stage.at))
    assert stage.lane.state is S.SERVING
    assert stage.begin_request()


def test_a_lane_on_demand_starts_with_its_first_request_and_unloads_when_idle() -> None:
    stage = Stage(LaneTerms(is_on_demand=True, idle_unload_s=600.0))
    stage.start()
    assert stage.lane.state is S.UNLOADED
    assert not stage.alive
    stage.begin_request()
    stage.run(60.0)
    assert stage.lane.state is S.SERVING
    stage.tell(ev.WorkerMeasured(stage.at, stage.gate_generation, 10**9, 1, 64, idle_s=700.0))
    stage.run(60.0)
    assert stage.lane.state is S.UNLOADED
    assert not stage.alive


def test_without_room_a_lane_is_blocked_and_says_what_it_waits_for() -> None:
    stage = Stage(QUICK, World(has_room=False))
    stage.start()
    stage.run(61.0)
    assert stage.lane.state is S.BLOCKED
    assert "no memory" in stage.lane.body.reason
    stage.world.has_room = True
    stage.run(60.0)
    assert stage.lane.state is S.SERVING


def test_a_lane_that_is_never_idle_is_measured_in_a_short_hold() -> None:
    terms = LaneTerms(canary=CanaryTerms(force_after_s=900.0), recycle=QUICK.recycle)
    stage = serving(terms)
    before = stage.lane.organs.measurer.last_sample
    for _ in range(200):
        while not stage.begin_request():
            stage.run(0.5)
        stage.run(10.0)
        stage.end_request(stage.gate_generation)
    clean = stage.lane.organs.judge.verdict.at
    assert before is not None
    assert clean > before.at + 900.0


def test_an_impossible_event_raises_and_names_itself() -> None:
    stage = serving()
    with pytest.raises(ImpossibleEventError, match="WorkerReady"):
        stage.lane.handle(ev.WorkerReady(stage.at, stage.gate_generation))


def test_a_late_event_of_a_dead_worker_is_dropped_and_noted() -> None:
    stage = serving()
    stage.tell(ev.WorkerExited(stage.at, 1, 0))
    assert stage.lane.state is S.SERVING
    assert "dropped" in stage.notes[-1]


def test_changed_thresholds_touch_no_worker_and_a_changed_command_drains_it() -> None:
    stage = serving()
    alive = set(stage.alive)
    stage.tell(ev.TermsChanged(stage.at, QUICK, needs_worker=False))
    stage.run(10.0)
    assert stage.alive == alive
    stage.tell(ev.TermsChanged(stage.at, QUICK, needs_worker=True))
    stage.run(60.0)
    assert stage.alive != alive
    assert stage.records[-1].trigger is Trigger.CONFIG
    assert stage.records[-1].outcome is Outcome.REPLACED


def test_a_shutdown_leaves_a_persons_wish_as_it_was() -> None:
    stage = serving()
    stage.tell(ev.StopAsked(stage.at, is_shutdown=True))
    stage.run(60.0)
    assert stage.lane.state is S.STOPPED
    assert stage.lane.body.wish is Wish.RUNNING
    assert not stage.alive


def test_a_worker_that_hangs_again_and_again_ends_in_failed_like_one_that_crashes() -> None:
    stage = serving()
    for _ in range(20):
        if stage.lane.state is S.SERVING:
            stage.tell(ev.WorkerHung(stage.at, stage.gate_generation, "no byte for 90 s"))
        stage.run(30.0)
    assert stage.lane.state is S.FAILED
    assert stage.records[-1].outcome is Outcome.FAILED
    assert [record.trigger for record in stage.records] == [Trigger.HUNG] * len(stage.records)


def test_an_idle_lane_on_demand_makes_room_for_another_and_comes_back_with_its_next_request() -> None:
    stage = Stage(LaneTerms(is_on_demand=True))
    stage.start()
    stage.begin_request()
    stage.run(60.0)
    stage.tell(ev.RoomWanted(stage.at, "big"))
    stage.run(60.0)
    assert stage.lane.state is S.UNLOADED
    assert "makes room for big" in stage.lane.body.reason
    stage.begin_request()
    stage.run(60.0)
    assert stage.lane.state is S.SERVING


def test_an_eager_lane_makes_room_for_nobody() -> None:
    stage = serving()
    stage.tell(ev.RoomWanted(stage.at, "big"))
    stage.run(60.0)
    assert stage.lane.state is S.SERVING
    assert len(stage.alive) == 1
