"""A lane on a server that someone else runs: only its owner can help it, and the lane waits for that by itself."""

from __future__ import annotations

import pytest

from supervisor.core.account.record import Outcome
from supervisor.core.lane import events as ev
from supervisor.core.states import LaneState
from supervisor.core.terms import LaneTerms, RecycleTerms
from supervisor.core.workers import Worker
from tests.core.stage import Stage, World

WATCHED = LaneTerms(can_restart=False, start_timeout_s=600.0, recycle=RecycleTerms(is_advised_only=True))
RESTARTED = LaneTerms(can_restart=True)


def hang(stage: Stage) -> None:
    stage.tell(ev.WorkerHung(stage.at, active(stage).generation, "nothing came for 90 s"))


def active(stage: Stage) -> Worker:
    return stage.lane.body.active


def blocked_on_a_hang() -> Stage:
    stage = Stage(WATCHED)
    stage.start()
    stage.world.never_ready = True
    hang(stage)
    stage.run(1200.0)
    return stage


def test_a_hang_that_only_the_owner_can_mend_blocks_the_lane_until_the_server_answers() -> None:
    stage = blocked_on_a_hang()
    assert stage.lane.state is LaneState.BLOCKED
    assert "nothing came for 90 s" in stage.lane.body.reason
    assert "no restart_command" in stage.lane.body.reason
    stage.tell(ev.WorkerReady(stage.at, active(stage).generation))
    stage.run(60.0)
    assert stage.lane.state is LaneState.SERVING


def test_its_record_says_that_nobody_restarted_it() -> None:
    [record] = blocked_on_a_hang().records
    assert record.outcome is Outcome.FAILED
    assert "no restart_command" in record.next


def test_a_server_that_is_not_there_blocks_the_lane_after_start_timeout_and_no_sooner() -> None:
    stage = Stage(WATCHED, World(never_ready=True))
    stage.tell(ev.StartAsked(0.0))
    stage.run(599.0)
    assert stage.lane.state is LaneState.STARTING
    stage.run(2.0)
    assert stage.lane.state is LaneState.BLOCKED


def test_a_server_that_dies_again_and_again_is_always_taken_back() -> None:
    stage = Stage(WATCHED)
    stage.start()
    for _ in range(8):
        stage.kill_worker()
        stage.run(400.0)
        assert stage.lane.state is LaneState.SERVING
    for _ in range(8):
        stage.kill_worker()
        stage.run(40.0)
    stage.run(600.0)
    assert stage.lane.state is LaneState.SERVING


def test_a_blocked_lane_can_be_stopped_and_leaves_no_one_looking() -> None:
    for event in (ev.StopAsked(0.0), ev.StopAsked(0.0, is_shutdown=True)):
        stage = blocked_on_a_hang()
        stage.tell(event)
        stage.run(1.0)
        assert (stage.lane.state, stage.alive) == (LaneState.STOPPED, set())


def test_new_settings_reach_a_lane_that_waits_for_its_owner() -> None:
    stage = blocked_on_a_hang()
    before = active(stage).generation
    stage.world.never_ready = False
    stage.tell(ev.TermsChanged(stage.at, WATCHED, needs_worker=True))
    stage.run(60.0)
    assert stage.lane.state is LaneState.SERVING
    assert active(stage).generation == before + 1


@pytest.mark.parametrize("ask", [ev.RecycleAsked, lambda at: ev.WorkerHung(at, 1, "nothing came")])
def test_a_restart_that_failed_is_a_failed_recycle_though_the_old_server_serves_on(ask: type[ev.Event]) -> None:
    stage = Stage(RESTARTED, World(stop_s=1e6))
    stage.start()
    stage.tell(ask(stage.at))
    stage.run(1.0)
    stage.tell(ev.WorkerExited(stage.at, 1, trouble="restart_command failed with exit code 3"))
    stage.run(60.0)
    assert stage.lane.state is LaneState.SERVING
    [record] = stage.records
    assert record.outcome is Outcome.FAILED
    assert "exit code 3" in record.next
