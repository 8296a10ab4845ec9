"""A degraded worker is first asked for what it can undo by itself; a recycle follows only if that does not cure it."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from supervisor.core.account.record import Effect, Outcome
from supervisor.core.account.story import told
from supervisor.core.lane import events as ev
from supervisor.core.lane.events import RemedyAnswer
from supervisor.core.recycle.remedy_memory import FIRST_REST_S, LONGEST_REST_S, RemedyMemory
from supervisor.core.recycle.worth import RecycleCost
from supervisor.core.speed.speed_judge import observations_a_year
from supervisor.core.states import GateMode, LaneState
from supervisor.core.terms import CanaryTerms, LaneTerms, RecycleTerms, RemedyName, TimerName, Trigger
from tests.core.stage import FRESH_TOK_S, Stage
from tests.core.test_lane_laws import check, deed

CLEAR, DROP, NO_DRAFTS = RemedyName.CLEAR_CACHE, RemedyName.DROP_PREFIX_CACHE, RemedyName.SPECULATION_OFF
TERMS = LaneTerms(
    canary=CanaryTerms(prompt_tokens=(256,)),
    recycle=RecycleTerms(min_uptime_s=0.0, wait_idle_s=60.0, max_hold_s=60.0, max_per_hour=99, max_per_day=99),
)
SLOW = FRESH_TOK_S / 3


def aged(terms: LaneTerms = TERMS, **remedies: float | RemedyAnswer) -> Stage:
    """A lane with a baseline over three spawns, whose worker has just become slow."""
    stage = Stage(replace(terms, recycle=replace(terms.recycle, is_advised_only=False, is_off=False)))
    stage.start()
    for _ in range(3):
        stage.tell(ev.RecycleAsked(stage.at))
        stage.run(200.0)
    stage.run(1200.0)
    stage.tell(ev.TermsChanged(stage.at, terms, needs_worker=False))
    stage.records.clear()
    stage.states = [stage.lane.state]
    stage.intents.clear()
    stage.world.tok_s_of[stage.lane.body.workers.last_generation] = SLOW
    stage.world.remedies = {RemedyName(name): what for name, what in remedies.items()}
    return stage


@pytest.fixture(scope="module")
def aged_stage() -> Stage:
    """A trial has just begun. To be copied: it is not cheap to make."""
    stage = aged()
    while not stage.lane.organs.remedies.trial:
        stage.run(0.5)
    return stage


def test_a_remedy_that_cures_ends_it_with_a_record_and_no_worker_is_touched() -> None:
    stage = aged(clear_cache=FRESH_TOK_S, drop_prefix_cache=FRESH_TOK_S)
    old = stage.lane.body.workers.last_generation
    stage.run(1200.0)
    assert stage.states == [LaneState.SERVING, LaneState.SUSPECT, LaneState.SERVING]
    assert (stage.asked, stage.alive) == ([CLEAR], {old})
    [record] = stage.records
    assert (record.trigger, record.outcome, record.downtime_s) == (Trigger.DEGRADED, Outcome.CURED, 0.0)
    [tried] = record.remedies
    assert (tried.name, tried.outcome, tried.ratio) == ("clear_cache", Effect.CURED, pytest.approx(1.0, abs=0.01))
    assert (tried.before_tok_s, tried.decode_tok_s) == (pytest.approx(SLOW), pytest.approx(FRESH_TOK_S))
    assert record.after.ratio == tried.ratio
    assert "First clear_cache was tried and cured it (100 % of fresh). No worker was stopped" in told(record.to_json())
    assert not stage.intents


def test_what_does_not_help_leads_on_to_the_next_remedy_and_then_to_the_recycle() -> None:
    stage = aged(clear_cache=SLOW, drop_prefix_cache=1.3 * SLOW)
    stage.run(1200.0)
    assert stage.asked == [CLEAR, DROP]
    [record] = stage.records
    assert record.outcome is Outcome.CURED
    assert [(each.name, each.outcome) for each in record.remedies] == [
        ("clear_cache", Effect.FUTILE),
        ("drop_prefix_cache", Effect.PARTIAL),
    ]
    assert record.before.decode_tok_s == pytest.approx(SLOW), "the record tells of the worker as it was convicted"
    assert record.worker.generation < stage.lane.body.workers.last_generation


def test_a_remedy_that_brought_nothing_rests_and_one_that_the_worker_lacks_is_not_held_against_it() -> None:
    stage = aged(clear_cache=SLOW)
    stage.run(1200.0)
    assert stage.asked == [CLEAR, DROP]
    for _ in range(2):
        stage.world.tok_s_of[stage.lane.body.workers.last_generation] = SLOW
        stage.run(2400.0)
    assert stage.asked == [CLEAR, DROP, DROP, DROP]
    assert [len(record.remedies) for record in stage.records] == [1, 0, 0]


@pytest.mark.parametrize("recycle", [{"is_advised_only": True}, {"is_off": True}])
def test_where_a_person_decides_no_remedy_is_tried(recycle: dict[str, bool]) -> None:
    stage = aged(replace(TERMS, recycle=replace(TERMS.recycle, **recycle)), clear_cache=FRESH_TOK_S)
    stage.run(2400.0)
    assert stage.lane.state is LaneState.SUSPECT
    assert (stage.asked, stage.records) == ([], [])


def test_a_remedy_waits_for_an_idle_moment_and_a_client_that_comes_meanwhile_goes_first() -> None:
    stage = aged(clear_cache=FRESH_TOK_S)
    while not stage.asked:
        stage.run(0.5)
    assert stage.gate is GateMode.OPEN
    assert stage.begin_request(), "the gate is open while the remedy is measured"
    generation = stage.gate_generation or 0
    stage.run(5.0)
    assert stage.records == []
    stage.end_request(generation)
    stage.run(30.0)
    assert [each.outcome for each in stage.records] == [Outcome.CURED]
    assert stage.asked == [CLEAR], "it was applied once, and only measured anew"


def test_a_lane_that_is_never_idle_is_held_for_no_longer_than_a_canary_may_hold_it() -> None:
    stage = aged(clear_cache=FRESH_TOK_S)
    while not stage.asked:
        stage.run(0.5)
    assert stage.begin_request()
    stage.run(TERMS.canary.hold_s + 5.0)
    assert stage.gate is GateMode.HELD
    stage.run(TERMS.canary.hold_s)
    assert stage.gate is GateMode.OPEN
    under_way = stage.lane.organs.recycler.under_way
    assert under_way is not None, "it waits for a moment to recycle instead"
    assert [each.outcome for each in under_way.remedies] == [Effect.UNMEASURED]


@pytest.mark.parametrize("answer", [RemedyAnswer.FAILED, RemedyAnswer.ABSENT])
def test_a_worker_that_cannot_apply_a_remedy_is_recycled_without_it(answer: RemedyAnswer) -> None:
    stage = aged(clear_cache=answer, drop_prefix_cache=answer)
    stage.run(1200.0)
    [record] = stage.records
    expected = [] if answer is RemedyAnswer.ABSENT else [Effect.FAILED] * 2
    assert [each.outcome for each in record.remedies] == expected
    assert record.outcome is Outcome.CURED


def test_a_worker_that_never_answers_to_a_remedy_is_recycled_after_its_deadline() -> None:
    stage = aged(clear_cache=SLOW, drop_prefix_cache=SLOW)
    stage.world.remedy_s = 1e6
    stage.run(1200.0)
    [record] = stage.records
    assert [each.outcome for each in record.remedies] == [Effect.FAILED] * 2


def test_the_end_of_an_earlier_wait_that_is_heard_late_does_not_end_the_remedy() -> None:
    stage = aged(clear_cache=FRESH_TOK_S)
    while not stage.asked:
        stage.run(0.1)
    stage.tell(ev.TimerFired(stage.at, TimerName.REMEDY))
    stage.run(60.0)
    [record] = stage.records
    assert [each.outcome for each in record.remedies] == [Effect.CURED]


@pytest.mark.parametrize("wish", [ev.DrainAsked, ev.StopAsked, ev.RecycleAsked])
def test_what_a_person_wants_ends_the_trial_at_once(wish: type[ev.Event]) -> None:
    stage = aged(clear_cache=FRESH_TOK_S)
    while not stage.asked:
        stage.run(0.1)
    stage.tell(wish(stage.at))
    assert stage.lane.organs.remedies.trial is None
    stage.run(60.0)
    assert stage.asked == [CLEAR]
    assert all(record.trigger is not Trigger.DEGRADED for record in stage.records)


def test_a_last_look_that_finds_the_worker_well_again_resumes_it_with_no_process_touched() -> None:
    mild = replace(TERMS, degraded=replace(TERMS.degraded, severe=0.1))
    stage = aged(mild, clear_cache=FRESH_TOK_S)
    generation = stage.lane.body.workers.last_generation
    stage.world.tok_s_of[generation] = FRESH_TOK_S / 1.6
    pending = 1.0 - 1.0 / observations_a_year(mild.canary)
    while (stage.lane.organs.judge.verdict.confidence or 0.0) < pending:
        stage.run(1.0)
        assert stage.at < 1e5
    assert stage.lane.state is LaneState.SUSPECT
    stage.world.tok_s_of[generation] = FRESH_TOK_S
    stage.run(1200.0)
    assert stage.lane.state is LaneState.SERVING
    assert (stage.asked, stage.records, stage.alive) == ([], [], {generation})
    assert set(stage.states) <= {LaneState.SERVING, LaneState.SUSPECT}


@pytest.mark.parametrize("is_well", [True, False])
def test_where_an_idle_moment_was_long_in_coming_the_gate_closes_only_after_another_look(is_well: bool) -> None:
    patient = replace(TERMS, recycle=replace(TERMS.recycle, wait_idle_s=3600.0))
    stage = aged(patient)
    stage.world.slot_s = 1.0
    generation = stage.lane.body.workers.last_generation
    while stage.lane.organs.recycler.under_way is None:
        stage.run(0.01)
    assert stage.begin_request()
    stage.run(1200.0)
    assert stage.lane.organs.recycler.under_way is not None
    if is_well:
        stage.world.tok_s_of[generation] = FRESH_TOK_S
    stage.end_request(generation)
    stage.run(300.0)
    [record] = stage.records
    assert record.outcome is (Outcome.ABORTED if is_well else Outcome.CURED)
    assert (stage.alive == {generation}) is is_well
    assert stage.lane.state is LaneState.SERVING
    assert stage.cut == 0
    if is_well:
        assert "last look found the worker well again" in record.next
        assert LaneState.DRAINING not in stage.states


def test_the_rest_of_a_remedy_doubles_up_to_a_week_and_outlives_the_daemon() -> None:
    memory = RemedyMemory()
    assert memory.may_try(CLEAR, 0.0)
    memory.brought_nothing(CLEAR, 0.0)
    assert not memory.may_try(CLEAR, FIRST_REST_S - 1)
    assert memory.may_try(CLEAR, FIRST_REST_S)
    memory.brought_nothing(CLEAR, 0.0)
    recalled = RemedyMemory.from_json(memory.to_json(0.0), at=1000.0, gone_s=FIRST_REST_S)
    assert not recalled.may_try(CLEAR, 1000.0 + FIRST_REST_S - 1)
    assert recalled.may_try(CLEAR, 1000.0 + FIRST_REST_S)
    for _ in range(10):
        recalled.brought_nothing(CLEAR, 0.0)
    assert recalled.may_try(CLEAR, LONGEST_REST_S)
    recalled.helped(CLEAR)
    assert recalled.may_try(CLEAR, 0.0)
    assert RemedyMemory.from_json(["torn"], 0.0, 0.0).may_try(CLEAR, 0.0)


PEOPLE = ("drain", "resume", "recycle", "probe", "stop", "start", "config", "threshold")
WORLD = ("begin", "end", "end all", "crash", "hang", "grows", "fast", "slow")
DEEDS = st.sampled_from((*PEOPLE, *WORLD, *("wait 0.1", "wait 1", "wait 5", "wait 40") * 2))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(deeds=st.lists(DEEDS, max_size=25), cures=st.booleans(), start=st.floats(0, 20))
def test_whatever_comes_between_the_gate_opens_again_and_the_lane_serves(
    aged_stage: Stage, deeds: list[str], cures: bool, start: float
) -> None:
    stage = copy.deepcopy(aged_stage)
    stage.world.remedies = {CLEAR: FRESH_TOK_S if cures else SLOW, DROP: SLOW}
    stage.run(start)
    for what in deeds:
        deed(stage, what)
        check(stage)
    deed(stage, "fast")
    deed(stage, "end all")
    for wish in ("resume", "start"):
        stage.run(1200.0)
        deed(stage, wish)
    stage.run(1200.0)
    assert stage.lane.state in (LaneState.SERVING, LaneState.SUSPECT)
    assert stage.gate is GateMode.OPEN
    assert stage.lane.organs.remedies.trial is None


def test_what_a_recycle_cost_is_learned_from_its_records_and_outlives_the_daemon() -> None:
    stage = aged()
    assert stage.lane.body.cost.seconds(0.0, None) == pytest.approx(stage.world.start_s + stage.world.stop_s + 2, abs=3)
    before = stage.lane.body.cost.seconds(0.0, 100.0)
    stage.tell(ev.RecordWritten(stage.at, prefix_lost_tokens=5000))
    recalled = RecycleCost.from_json(stage.lane.body.cost.to_json())
    assert recalled.seconds(0.0, 100.0) == pytest.approx(before + 50.0)
    assert RecycleCost().seconds(12.0, 100.0) == 12.0, "before the first one, what the last start took"
