"""Laws of the lane machine that hold whatever happens, in whatever order."""

from __future__ import annotations

import inspect

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from supervisor.core.lane import events as ev
from supervisor.core.lane.lane import TABLE
from supervisor.core.lane.reactions.to_time import WAITS
from supervisor.core.samples import Void
from supervisor.core.states import GATE_BY_STATE, SUCCESSORS, GateMode, LaneState
from supervisor.core.terms import LaneTerms, RecycleTerms, Replace, TimerName, Trigger, Wish
from tests.core.stage import Stage, World

S = LaneState


def test_the_table_knows_every_event_the_waits_every_timer_and_the_gate_every_state() -> None:
    events = {kind for _, kind in inspect.getmembers(ev, inspect.isclass) if issubclass(kind, ev.Event)}
    assert set(TABLE) == events - {ev.Event, ev.WorkerEvent}
    assert set(WAITS) == set(TimerName)
    assert set(GATE_BY_STATE) == set(SUCCESSORS) == set(LaneState)


def test_no_row_acts_where_it_calls_itself_impossible() -> None:
    for kind, row in TABLE.items():
        assert not row.acts_in & row.impossible_in, kind


def test_from_every_state_a_person_can_reach_stopped_and_serving() -> None:
    for goal in (S.STOPPED, S.SERVING):
        reached = {goal}
        while grown := {state for state in LaneState if set(SUCCESSORS[state]) & reached} - reached:
            reached |= grown
        assert reached == set(LaneState)


PEOPLE = ("start", "stop", "stop now", "drain", "resume", "recycle", "recycle now", "probe", "config", "threshold")
FAULTS = (
    "crash",
    "hang",
    "slow",
    "fast",
    "host slow",
    "no room",
    "room",
    "ignores term",
    "heeds term",
    "dies",
    "lives",
)
TRAFFIC = ("begin", "begin", "begin", "end", "end", "end all", "grows", "idle")
WAITING = tuple(f"wait {seconds}" for seconds in (0.1, 1, 5, 40, 300, 1800))
DEEDS = st.sampled_from(PEOPLE + FAULTS + TRAFFIC + WAITING * 2)


def deed(stage: Stage, what: str) -> None:  # noqa: C901, PLR0912 - one case a deed
    """Do one thing to the stage."""
    active = stage.lane.body.workers.active
    match what.split():
        case ["start"]:
            stage.tell(ev.StartAsked(stage.at))
        case ["stop", *now]:
            stage.tell(ev.StopAsked(stage.at, is_now=bool(now)))
        case ["drain"]:
            stage.tell(ev.DrainAsked(stage.at))
        case ["resume"]:
            stage.tell(ev.ResumeAsked(stage.at))
        case ["recycle", *now]:
            stage.tell(ev.RecycleAsked(stage.at, is_now=bool(now)))
        case ["probe"]:
            stage.tell(ev.ProbeAsked(stage.at))
        case ["config" | "threshold"]:
            stage.tell(ev.TermsChanged(stage.at, stage.terms, needs_worker=what == "config"))
        case ["crash"]:
            stage.kill_worker()
        case ["hang"] if active and active.generation in stage.alive:
            stage.tell(ev.WorkerHung(stage.at, active.generation, "no byte"))
        case ["slow"] if active:
            stage.world.tok_s_of[active.generation] = 20.0
        case ["fast"]:
            stage.world.tok_s_of.clear()
            stage.world.tok_s, stage.world.void = 60.0, None
        case ["host", "slow"]:
            stage.world.tok_s = 20.0
        case ["no", "room"]:
            stage.world.has_room = False
        case ["room"]:
            stage.world.has_room = True
        case ["ignores" | "heeds", "term"]:
            stage.world.ignores_term = what == "ignores term"
        case ["dies" | "lives"]:
            stage.world.dies_at_start = what == "dies"
        case ["begin"]:
            stage.begin_request()
        case ["end", *every]:
            for generation, count in tuple(stage.inflight.items()):
                for _ in range(count if every else min(count, 1)):
                    stage.end_request(generation)
        case ["grows"] if active and active.generation in stage.alive:
            stage.tell(ev.WorkerMeasured(stage.at, active.generation, 9 * 10**9, 100, 6400))
        case ["idle"] if active and active.generation in stage.alive and stage.lane.state is S.SERVING:
            stage.tell(ev.WorkerMeasured(stage.at, active.generation, 10**9, 100, 6400, idle_s=9999.0))
        case ["wait", seconds]:
            stage.run(float(seconds))
        case _:
            pass


TERMS = st.builds(
    LaneTerms,
    replace=st.sampled_from([None, Replace.OVERLAP, Replace.IN_PLACE]),
    may_kill=st.booleans(),
    is_on_demand=st.booleans(),
    idle_unload_s=st.sampled_from([None, 600.0]),
    memory_limit_bytes=st.sampled_from([None, 8 * 10**9]),
    drain_timeout_s=st.sampled_from([5.0, 600.0]),
    recycle=st.builds(
        RecycleTerms,
        min_uptime_s=st.just(0.0),
        wait_idle_s=st.sampled_from([0.0, 30.0]),
        max_per_hour=st.sampled_from([2, 100]),
        after_requests=st.sampled_from([None, 50]),
    ),
)


def check(stage: Stage) -> None:
    """What must hold after every deed."""
    body, workers = stage.lane.body, stage.lane.body.workers
    assert stage.alive <= {
        worker.generation
        for worker in (workers.active, workers.candidate, *workers.retiring.values())
        if worker is not None
    }, "a process that the lane has lost sight of"
    if body.terms.replace is Replace.IN_PLACE:
        assert stage.most_alive <= 1
    if stage.gate is GateMode.OPEN:
        assert body.state in (S.SERVING, S.SUSPECT)
        assert stage.gate_generation == body.active.generation
    if body.state in (S.STOPPED, S.UNLOADED, S.FAILED, S.BACKING_OFF):
        assert workers.active is None
    assert len(stage.alive) <= 3


@pytest.mark.slow
@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(terms=TERMS, deeds=st.lists(DEEDS, min_size=1, max_size=60))
def test_whatever_happens_no_worker_is_lost_in_place_has_one_and_the_gate_is_open_only_to_the_active(
    terms: LaneTerms, deeds: list[str]
) -> None:
    stage = Stage(terms)
    stage.start()
    for what in deeds:
        deed(stage, what)
        check(stage)
    begun = {record.lane for record in stage.records}
    assert begun <= {"stage"}
    stage.world = World()
    stage.tell(ev.StopAsked(stage.at, is_now=True))
    for generation in tuple(stage.alive):
        stage.kill_generation(generation)
    stage.run(7200.0)
    assert stage.lane.state is S.STOPPED, "stopped by a person, it stays stopped"
    assert not stage.alive
    assert stage.lane.body.wish is Wish.STOPPED
    assert stage.lane.organs.recycler.under_way is None, "a recycle without a record"
    stage.start()
    stage.begin_request()
    stage.run(60.0)
    assert stage.lane.state is S.SERVING


@settings(max_examples=150, deadline=None)
@given(deeds=st.lists(st.sampled_from(("begin", "end", "wait 1", "wait 40", "slow", "fast", "probe")), max_size=40))
def test_without_hangs_crashes_and_people_nothing_in_flight_is_ever_cut(deeds: list[str]) -> None:
    stage = Stage(LaneTerms(recycle=RecycleTerms(min_uptime_s=0.0, wait_idle_s=5.0, max_per_hour=100)))
    stage.start()
    for what in deeds:
        deed(stage, what)
        check(stage)
    assert stage.cut == 0


@settings(max_examples=100, deadline=None)
@given(void=st.sampled_from(list(Void)), seconds=st.integers(60, 7200))
def test_void_runs_never_lead_to_a_recycle_for_slowness(void: Void, seconds: int) -> None:
    stage = Stage()
    stage.start()
    stage.world.void = void
    stage.run(float(seconds))
    assert all(record.trigger is not Trigger.DEGRADED for record in stage.records)
