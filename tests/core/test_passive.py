"""What clients' streams tell: a suspicion, held against streams of their own kind, and never more."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from supervisor.core.lane.events import StreamEnded
from supervisor.core.samples import Status
from supervisor.core.speed.decode_rate import decode_rate
from supervisor.core.speed.passive import STREAMS_THAT_TELL, PassiveRates, StreamRate
from supervisor.core.states import GateMode
from supervisor.core.terms import BaselineTerms
from tests.core.stage import Stage

TERMS = BaselineTerms()
OLD_S = TERMS.fresh_for_s + 1


def stream(
    tok_s: float, *, context: int = 500, at_once: int = 1, age_s: float = OLD_S, is_estimated: bool = False
) -> StreamRate:
    return StreamRate(tok_s, context, at_once, is_estimated, age_s, worker_requests=1)


def learned(*streams: StreamRate) -> PassiveRates:
    """Twelve fresh streams at 60 tok/s, and then these."""
    passive = PassiveRates()
    for one in [stream(60.0, age_s=1.0)] * 12 + list(streams):
        passive.add(one, TERMS)
    return passive


def test_streams_that_have_slowed_down_raise_a_suspicion_once_enough_tell() -> None:
    passive = learned(*[stream(20.0)] * (STREAMS_THAT_TELL - 1))
    assert passive.suspicion is None
    passive.add(stream(20.0), TERMS)
    assert passive.ratio == pytest.approx(1 / 3)
    assert passive.suspicion == "clients' streams run at 33 % of what such streams had at first"


@pytest.mark.parametrize("rate", [47.0, 60.0, 90.0])
def test_streams_about_as_fast_as_ever_raise_none(rate: float) -> None:
    assert learned(*[stream(rate)] * 50).suspicion is None


def test_a_kind_of_stream_that_was_not_there_when_the_worker_was_fresh_tells_nothing() -> None:
    long, crowded = stream(10.0, context=20_000), stream(10.0, at_once=8)
    uncounted = stream(10.0, is_estimated=True)
    assert learned(*[long, crowded, uncounted] * 20).suspicion is None


def test_each_kind_is_held_against_its_own() -> None:
    passive = PassiveRates()
    kinds = ((60.0, 500), (25.0, 20_000))
    for rate, context in kinds:
        for _ in range(12):
            passive.add(stream(rate, context=context, age_s=1.0), TERMS)
    for _ in range(20):
        for rate, context in kinds:
            passive.add(stream(rate, context=context), TERMS)
    assert passive.ratio == pytest.approx(1.0)


def test_tokens_that_were_not_told_are_marked() -> None:
    passive = PassiveRates()
    for _ in range(12):
        passive.add(stream(60.0, is_estimated=True, age_s=1.0), TERMS)
    for _ in range(12):
        passive.add(stream(20.0, is_estimated=True), TERMS)
    assert str(passive.suspicion).endswith("estimated from chunks")
    assert passive.summary(None)["estimated"]


def test_what_a_canary_has_found_well_is_usual_from_then_on_and_a_further_fall_is_not() -> None:
    passive = learned(*[stream(30.0)] * 12)
    assert passive.suspicion
    passive.cleared()
    for _ in range(12):
        passive.add(stream(28.0), TERMS)
    assert passive.suspicion is None
    for _ in range(12):
        passive.add(stream(15.0), TERMS)
    assert passive.suspicion


def test_another_worker_is_held_against_its_own_fresh_streams() -> None:
    passive = learned(*[stream(20.0)] * 12)
    passive.new_life()
    for _ in range(20):
        passive.add(stream(20.0), TERMS)
    assert passive.suspicion is None


def test_long_contexts_slow_beside_a_good_canary_are_called_context() -> None:
    passive = learned(*[stream(59.0)] * 3, *[stream(11.0, context=20_000)] * 3)
    assert passive.context_words(60.1) == (
        "streams of 16000 prompt tokens and more run at 11.0 tok/s, the canary at 60.1: context, not age"
    )
    assert passive.context_words(14.0) is None, "the canary is slow too"
    assert passive.context_words(None) is None
    assert passive.tok_s_by_context() == {0: pytest.approx(60.0), 16000: 11.0}


@pytest.mark.parametrize(
    ("tokens", "chunks", "first_chunks", "lasted_s", "rate"),
    [
        (65, 65, 1, 1.0, 64.0),
        (64, 16, 1, 1.0, 60.0),
        (64, 64, 4, 2.0, 30.0),
        (8, 8, 1, 1.0, None),
        (64, 64, 64, 0.0, None),
        (0, 0, 0, 1.0, None),
    ],
)
def test_the_rate_of_a_stream_leaves_out_what_came_with_the_first_read(
    tokens: int, chunks: int, first_chunks: int, lasted_s: float, rate: float | None
) -> None:
    assert decode_rate(tokens, chunks, first_chunks, lasted_s) == rate


# ---- in a lane ----


def busy(stage: Stage, tok_s: float, *, streams: int = 12, age_s: float = OLD_S) -> None:
    for _ in range(streams):
        stage.tell(StreamEnded(stage.at, 1, stream(tok_s, age_s=age_s)))


def test_slow_streams_bring_the_canary_forward_and_a_good_one_answers_them() -> None:
    stage = Stage()
    stage.start()
    stage.run(3600.0)
    busy(stage, 60.0, age_s=1.0)
    before = stage.lane.organs.judge.verdict.at
    stage.run(stage.at - before + 10.0)
    measured = stage.lane.organs.judge.verdict.at
    busy(stage, 20.0)
    assert stage.lane.organs.measurer.cadence.is_doubted_by_clients
    stage.run(100.0)
    assert stage.lane.organs.judge.verdict.at > measured
    assert not stage.lane.organs.measurer.cadence.is_doubted_by_clients
    assert stage.lane.organs.measurer.passive.suspicion is None
    assert any("a canary looks soon" in note for note in stage.notes)


def test_on_a_lane_that_is_never_idle_they_hold_the_gate_for_a_canary() -> None:
    stage = Stage()
    stage.start()
    busy(stage, 60.0, age_s=1.0)
    stage.begin_request()
    stage.run(600.0)
    busy(stage, 20.0)
    for _ in range(200):
        stage.run(1.0)
        if stage.gate is GateMode.HELD:
            break
    assert stage.gate is GateMode.HELD
    stage.end_request(1)
    before = stage.lane.organs.judge.verdict.at
    stage.run(10.0)
    assert stage.lane.organs.judge.verdict.at > before
    assert stage.gate is GateMode.OPEN


@settings(max_examples=20, deadline=None)
@given(st.lists(st.floats(0.01, 200.0), max_size=20))
def test_however_slow_streams_are_they_never_convict(rates: list[float]) -> None:
    stage = Stage()
    stage.start()
    busy(stage, 60.0, age_s=1.0)
    for rate in rates:
        busy(stage, rate, streams=1)
        stage.run(30.0)
    assert stage.lane.organs.judge.verdict.status in (Status.HEALTHY, Status.UNKNOWN)
    assert stage.records == []
