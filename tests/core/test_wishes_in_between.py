"""What a person asks for while the lane is on its way somewhere else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from supervisor.core.account.record import Outcome
from supervisor.core.lane import events as ev
from supervisor.core.states import LaneState
from supervisor.core.terms import LaneTerms, RecycleTerms, Replace, Trigger
from tests.core.stage import Stage

S = LaneState
TERMS = LaneTerms(
    replace=Replace.IN_PLACE,
    drain_timeout_s=600.0,
    recycle=RecycleTerms(min_uptime_s=0.0, wait_idle_s=0.0, max_hold_s=240.0, max_per_hour=100, max_per_day=100),
)


def busy(terms: LaneTerms = TERMS) -> Stage:
    """A lane that serves, with one request in flight."""
    stage = Stage(terms)
    stage.start()
    assert stage.begin_request()
    return stage


def finish_requests(stage: Stage) -> None:
    for generation, count in tuple(stage.inflight.items()):
        for _ in range(count):
            stage.end_request(generation)
    stage.run(60.0)


def test_a_start_while_a_recycle_drains_changes_nothing_about_the_recycle() -> None:
    stage = busy()
    stage.tell(ev.RecycleAsked(stage.at))
    stage.run(1.0)
    assert stage.lane.state is S.DRAINING
    stage.tell(ev.StartAsked(stage.at))
    finish_requests(stage)
    assert stage.lane.state is S.SERVING
    assert [record.outcome for record in stage.records] == [Outcome.REPLACED]
    assert stage.lane.organs.recycler.under_way is None, "it would keep its slot, and no other could begin"


@pytest.mark.parametrize("asked", [ev.StopAsked(0.0), ev.DrainAsked(0.0)])
def test_a_recycle_asked_for_while_a_person_empties_the_lane_cuts_nothing_and_takes_nothing_back(
    asked: ev.Event,
) -> None:
    stage = busy()
    generation = stage.gate_generation
    stage.tell(replace(asked, at=stage.at))
    wanted = ev.RecycleAsked(stage.at)
    assert stage.lane.objection(wanted)
    stage.tell(wanted)
    stage.run(1.0)
    assert generation in stage.alive, "its stream is still in flight"
    finish_requests(stage)
    assert stage.lane.state is (S.STOPPED if isinstance(asked, ev.StopAsked) else S.DRAINED)


@pytest.mark.parametrize(
    "wish", [ev.StartAsked(0.0), ev.DrainAsked(0.0), ev.ResumeAsked(0.0), ev.RecycleAsked(0.0), ev.ProbeAsked(0.0)]
)
def test_a_lane_that_goes_with_its_daemon_hears_no_more_wishes(wish: ev.Event) -> None:
    stage = busy()
    stage.tell(ev.StopAsked(stage.at, is_shutdown=True))
    assert stage.lane.objection(replace(wish, at=stage.at))
    stage.tell(replace(wish, at=stage.at))
    finish_requests(stage)
    assert stage.lane.state is S.STOPPED
    assert not stage.alive


def test_a_person_may_hurry_a_lane_that_goes_with_its_daemon() -> None:
    stage = busy()
    stage.tell(ev.StopAsked(stage.at, is_shutdown=True))
    stage.tell(ev.StopAsked(stage.at, is_shutdown=True, is_now=True))
    stage.run(10.0)
    assert stage.lane.state is S.STOPPED


def grown(stage: Stage, requests: int = 100, gigabytes: int = 1) -> None:
    active = stage.lane.body.active
    stage.tell(ev.WorkerMeasured(stage.at, active.generation, gigabytes * 10**9, requests, 6400))
    stage.run(60.0)


@pytest.mark.parametrize(
    "terms",
    [
        replace(TERMS.recycle, after_requests=50, is_off=True),
        replace(TERMS.recycle, after_requests=50, is_advised_only=True),
        replace(TERMS.recycle, after_requests=50, min_uptime_s=3600.0),
    ],
)
def test_a_budget_that_is_spent_asks_like_any_planned_recycle(terms: RecycleTerms) -> None:
    stage = Stage(replace(TERMS, recycle=terms))
    stage.start()
    grown(stage)
    assert not stage.records
    assert stage.lane.state is S.SERVING


def test_a_spent_budget_waits_for_the_quiet_hours() -> None:
    stage = Stage(replace(TERMS, recycle=replace(TERMS.recycle, after_requests=50)))
    stage.start()
    stage.tell(ev.WindowChanged(stage.at, is_open=False))
    grown(stage)
    assert not stage.records
    stage.tell(ev.WindowChanged(stage.at, is_open=True))
    grown(stage)
    assert [record.trigger for record in stage.records] == [Trigger.BUDGET]


def test_a_budget_smaller_than_a_lane_needs_does_not_recycle_without_end() -> None:
    stage = Stage(replace(TERMS, recycle=replace(TERMS.recycle, after_requests=50, max_per_hour=2)))
    stage.start()
    for _ in range(10):
        grown(stage)
    assert len(stage.records) == 2


def test_a_memory_limit_below_what_a_worker_needs_does_not_recycle_without_end() -> None:
    stage = Stage(replace(TERMS, memory_limit_bytes=8 * 10**9, recycle=replace(TERMS.recycle, max_per_hour=2)))
    stage.start()
    for _ in range(10):
        grown(stage, gigabytes=9)
    assert [record.trigger for record in stage.records] == [Trigger.MEMORY] * 2
    assert "max_per_hour" in stage.lane.body.words


def test_a_memory_limit_only_advises_where_recycling_is_off() -> None:
    stage = Stage(replace(TERMS, memory_limit_bytes=8 * 10**9, recycle=replace(TERMS.recycle, is_off=True)))
    stage.start()
    grown(stage, gigabytes=9)
    assert not stage.records
    assert "memory.limit" in stage.lane.body.words


def test_why_it_is_not_recycled_is_said_only_as_long_as_it_holds() -> None:
    stage = Stage(replace(TERMS, memory_limit_bytes=8 * 10**9, recycle=replace(TERMS.recycle, is_off=True)))
    stage.start()
    before = stage.lane.body.words
    grown(stage, gigabytes=9)
    assert stage.lane.body.words != before
    grown(stage, gigabytes=7)
    assert stage.lane.body.words == before


def test_another_reason_why_it_is_not_recycled_takes_the_place_of_the_first() -> None:
    terms = replace(TERMS, memory_limit_bytes=8 * 10**9)
    stage = Stage(replace(terms, recycle=replace(TERMS.recycle, is_off=True)))
    stage.start()
    grown(stage, gigabytes=9)
    advised = replace(terms, recycle=replace(TERMS.recycle, is_advised_only=True))
    stage.tell(ev.TermsChanged(stage.at, advised, needs_worker=False))
    grown(stage, gigabytes=9)
    assert "recycling is off" not in stage.lane.body.words
    assert "a person decides" in stage.lane.body.words
