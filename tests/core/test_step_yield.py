"""A slow worker whose steps are as fast as ever has lost its acceptance, not aged."""

from __future__ import annotations

import pytest

from supervisor.core.record import CauseKind
from supervisor.core.replacement import cause_of
from supervisor.core.samples import Status, Verdict
from supervisor.core.step_yield import StepYield
from supervisor.core.terms import Trigger


@pytest.mark.parametrize(
    ("yields", "ratio", "kind"),
    [
        ((3.2, 1.1), 0.34, CauseKind.ACCEPTANCE),
        ((3.2, 3.1), 0.31, CauseKind.WORKER_AGED),
        ((3.2, 2.6), 0.31, CauseKind.WORKER_AGED),
        (None, 0.31, CauseKind.WORKER_AGED),
    ],
)
def test_the_cause_is_told_by_what_steps_yield(
    yields: tuple[float, float] | None, ratio: float, kind: CauseKind
) -> None:
    verdict = Verdict(Status.DEGRADED, "slow", ratio=ratio, tokens_per_step=yields)
    assert cause_of(Trigger.DEGRADED, verdict, "slow").kind is kind


def test_it_says_nothing_of_too_few_runs_or_of_a_worker_that_does_not_tell() -> None:
    steps = StepYield()
    for told in (3.0, None, 3.1, 2.9, None, 3.0):
        steps.add(told)
    assert steps.first_and_last is None
    for told in (3.0, 1.0, 1.0, 1.0, 1.0, 1.0):
        steps.add(told)
    assert steps.first_and_last == (3.0, 1.0)
