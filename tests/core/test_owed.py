"""A recycle that a person or a reload asked for is owed until another worker serves."""

from __future__ import annotations

import pytest

from supervisor.core.account.record import Outcome
from supervisor.core.lane import events as ev
from supervisor.core.terms import Trigger
from tests.core.test_wishes_in_between import TERMS, busy, finish_requests


@pytest.mark.parametrize("trigger", [Trigger.OPERATOR, Trigger.CONFIG])
def test_what_found_no_quiet_moment_is_tried_again(trigger: Trigger) -> None:
    stage = busy()
    asked = ev.TermsChanged(stage.at, TERMS, True) if trigger is Trigger.CONFIG else ev.RecycleAsked(stage.at)
    stage.tell(asked)
    stage.run(300.0)
    assert [(record.trigger, record.outcome) for record in stage.records] == [(trigger, Outcome.ABORTED)]
    finish_requests(stage)
    stage.run(TERMS.canary.every_s + 60.0)
    active = stage.lane.body.active
    stage.tell(
        ev.WorkerMeasured(stage.at, active.generation, memory_bytes=1, requests=1, generated_tokens=1, idle_s=stage.at)
    )
    stage.run(120.0)
    assert (stage.records[-1].trigger, stage.records[-1].outcome) == (trigger, Outcome.REPLACED)
    assert stage.lane.body.owed is None


def test_a_drain_takes_an_operators_recycle_back_but_not_a_reloads() -> None:
    for asked, is_kept in ((ev.RecycleAsked(0.0), False), (ev.TermsChanged(0.0, TERMS, True), True)):
        stage = busy()
        stage.tell(asked)
        stage.run(1.0)
        stage.tell(ev.DrainAsked(stage.at))
        assert (stage.lane.body.owed is not None) == is_kept
