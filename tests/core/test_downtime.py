"""How long a recycle left a lane without a worker, also where none came."""

from __future__ import annotations

from supervisor.core.account.record import Outcome
from supervisor.core.lane import events as ev
from supervisor.core.states import LaneState
from supervisor.core.terms import LaneTerms, RecycleTerms, Replace
from tests.core.stage import Stage

TERMS = LaneTerms(replace=Replace.IN_PLACE, recycle=RecycleTerms(min_uptime_s=0.0, wait_idle_s=0.0))


def test_a_recycle_whose_new_worker_never_comes_was_downtime_until_the_lane_gave_up() -> None:
    stage = Stage(TERMS)
    stage.start()
    stage.world.dies_at_start = True
    asked_at = stage.at
    stage.tell(ev.RecycleAsked(stage.at))
    stage.run(600.0)
    assert stage.lane.state is LaneState.FAILED
    [record] = stage.records
    assert record.outcome is Outcome.FAILED
    assert 10.0 < record.downtime_s <= stage.lane.body.since - asked_at
    assert stage.intents[0].downtime_s == 0.0
