"""A slow worker whose steps are as fast as ever has lost its acceptance, not aged."""

from __future__ import annotations

import pytest

from supervisor.core.account.cause import Evidence, cause_of
from supervisor.core.account.record import CauseKind
from supervisor.core.samples import Status, Verdict
from supervisor.core.speed.own_words import OwnWords
from supervisor.core.speed.step_yield import StepYield, is_only_slow_with_speculation
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
    assert cause_of(Trigger.DEGRADED, Evidence(verdict), "slow").kind is kind


def test_what_the_server_says_of_itself_is_evidence() -> None:
    said = OwnWords(
        step_ms=(45.12, 135.0),
        phases_ms=(("backbone", (40.0, 134.8)), ("mtp", (5.0, 15.1))),
        tokens_per_step=(3.24, 3.2),
        acceptance=((0.95, 0.93), (0.9, 0.88)),
        memory_bytes=(101e9, 102.44e9),
    )
    cause = cause_of(Trigger.DEGRADED, Evidence(Verdict(Status.DEGRADED, "slow", ratio=0.31), said=said), "slow")
    assert cause.kind is CauseKind.WORKER_AGED
    assert cause.evidence == (
        "slow",
        "the server says: step 45.1 -> 135.0 ms (backbone 40.0 -> 134.8 ms, mtp 5.0 -> 15.1 ms)",
        "the server says: 3.24 -> 3.20 tokens a step, drafts taken, by depth: 95 % -> 93 %, 90 % -> 88 %",
        "the server says: memory 101.0 -> 102.4 GB",
    )


def test_a_servers_own_count_of_its_steps_tells_lost_acceptance_too() -> None:
    said = OwnWords(step_ms=(45.0, 45.0), tokens_per_step=(3.2, 1.1))
    verdict = Verdict(Status.DEGRADED, "slow", ratio=0.34)
    assert cause_of(Trigger.DEGRADED, Evidence(verdict, said=said), "slow").kind is CauseKind.ACCEPTANCE
    assert OwnWords().sentences == ()


@pytest.mark.parametrize(
    ("plain", "ratio", "is_it"),
    [((40.0, 39.0), 0.5, True), ((40.0, 20.0), 0.5, False), ((40.0, 39.0), 0.97, False), (None, 0.5, False)],
)
def test_a_worker_as_fast_as_ever_without_speculation_has_lost_its_acceptance(
    plain: tuple[float, float] | None, ratio: float, is_it: bool
) -> None:
    assert is_only_slow_with_speculation(plain, ratio) is is_it
    verdict = Verdict(Status.DEGRADED, "slow", ratio=ratio, plain_tok_s=plain)
    cause = cause_of(Trigger.DEGRADED, Evidence(verdict), "slow")
    assert (cause.kind is CauseKind.ACCEPTANCE) is is_it
    if is_it:
        assert "with speculation off it runs at 39.0 tok/s, at first at 40.0" in cause.evidence


def test_it_says_nothing_of_too_few_runs_or_of_a_worker_that_does_not_tell() -> None:
    steps = StepYield()
    for told in (3.0, None, 3.1, 2.9, None, 3.0):
        steps.add(told)
    assert steps.first_and_last is None
    for told in (3.0, 1.0, 1.0, 1.0, 1.0, 1.0):
        steps.add(told)
    assert steps.first_and_last == (3.0, 1.0)
