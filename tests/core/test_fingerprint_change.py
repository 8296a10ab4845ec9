"""Workers get another fingerprint: the change is an event, so that it can be replayed like any other."""

from __future__ import annotations

import pytest

from supervisor.core.lane import events as ev
from supervisor.core.states import LaneState
from tests.core.stage import Stage


def learned() -> Stage:
    stage = Stage()
    stage.start()
    for _ in range(6):
        stage.run(300.0)
    assert stage.lane.organs.judge.baseline_summary()["runs"] > 0
    return stage


def test_another_fingerprint_forgets_what_fresh_meant() -> None:
    stage = learned()
    stage.tell(ev.BaselineRecalled(stage.at, "another", None))
    assert stage.lane.organs.judge.baseline_summary()["runs"] == 0


def test_a_fingerprint_that_was_known_before_brings_its_baseline_back() -> None:
    stage = learned()
    kept = stage.lane.organs.judge.to_json()
    stage.tell(ev.BaselineRecalled(stage.at, "another", None))
    stage.tell(ev.BaselineRecalled(stage.at, "the first", kept))
    assert stage.lane.organs.judge.to_json() == kept


@pytest.mark.parametrize("state", [LaneState.STOPPED, LaneState.SERVING])
def test_it_changes_nothing_else_in_any_state(state: LaneState) -> None:
    stage = learned() if state is LaneState.SERVING else Stage()
    stage.tell(ev.BaselineRecalled(stage.at, "another", None))
    assert stage.lane.state is state
