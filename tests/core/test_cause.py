"""The tree of causes: each leaf from evidence, with its numbers in the sentences."""

from __future__ import annotations

from dataclasses import replace

import pytest

from supervisor.core.account.cause import Cause, Evidence, HostReading, Life, Reading, cause_of, of_slowness
from supervisor.core.account.record import CauseKind
from supervisor.core.samples import Purpose, Sample, Status, Verdict
from supervisor.core.terms import Trigger

GB = 10**9
SLOW = Verdict(Status.DEGRADED, "20.0 tok/s, 33 % of a fresh worker's 60.0", ratio=1 / 3, baseline_tok_s=60.0)
WELL = Verdict(Status.HEALTHY, "60.0 tok/s", ratio=1.0, baseline_tok_s=60.0)
CALM = HostReading(total_bytes=64 * GB, available_bytes=20 * GB, compressed_bytes=GB, wired_bytes=20 * GB)


def read(memory_bytes: int = 10 * GB, **host: object) -> Reading:
    return Reading(memory_bytes, replace(CALM, **host))


def of(now: Reading, verdict: Verdict = SLOW) -> Cause:
    return of_slowness(Evidence(verdict, fresh=read(), now=now, first_ratio=1.0))


@pytest.mark.parametrize(
    ("now", "kind", "words"),
    [
        (read(), CauseKind.WORKER_AGED, "50.0 ms a token, a fresh worker's 16.7 ms"),
        (read(16 * GB), CauseKind.MEMORY_PRESSURE, "grew from 10.0 GB to 16.0 GB"),
        (read(swap_used_bytes=3 * GB), CauseKind.MEMORY_PRESSURE, "swap in use grew from 0.0 GB to 3.0 GB"),
        (read(compressed_bytes=9 * GB), CauseKind.MEMORY_PRESSURE, "compressed memory grew from 1.0 GB to 9.0 GB"),
        (read(wired_bytes=30 * GB), CauseKind.MEMORY_PRESSURE, "wired memory grew from 20.0 GB to 30.0 GB"),
        (read(pressure="critical"), CauseKind.MEMORY_PRESSURE, "memory pressure critical"),
        (read(heat="heavy"), CauseKind.HOST_SLOW, "it is hot (heavy)"),
        (read(is_low_power=True), CauseKind.HOST_SLOW, "low power mode is on"),
        (read(10 * GB + 10**8, pressure="normal", heat="nominal"), CauseKind.WORKER_AGED, "ms a token"),
    ],
)
def test_what_the_machine_tells_decides_why_a_worker_is_slow(now: Reading, kind: CauseKind, words: str) -> None:
    cause = of(now)
    assert cause.kind is kind
    assert cause.evidence[0] == SLOW.reason
    assert any(words in sentence for sentence in cause.evidence[1:])


def test_steps_that_give_less_outweigh_what_the_machine_tells() -> None:
    cause = of(read(16 * GB), replace(SLOW, tokens_per_step=(3.2, 1.1)))
    assert cause.kind is CauseKind.ACCEPTANCE
    assert "a step gives 1.10 tokens, at first 3.20" in cause.evidence


def test_steps_that_give_as_much_take_longer_and_it_is_said_by_how_much() -> None:
    cause = of(read(), replace(SLOW, tokens_per_step=(3.2, 3.2)))
    assert cause.kind is CauseKind.WORKER_AGED
    assert "a step gives 3.20 tokens, at first 3.20; it takes 3.0 times as long" in cause.evidence


def test_a_worker_slow_from_its_first_run_has_not_aged() -> None:
    cause = of_slowness(Evidence(SLOW, first_ratio=0.5))
    assert cause.kind is CauseKind.BAD_SPAWN
    assert "its first judged run was at 50 % of a fresh worker's rate" in cause.evidence


def test_the_host_check_counts_beyond_chance() -> None:
    assert of_slowness(Evidence(SLOW, host_slowness=0.3)).kind is CauseKind.HOST_SLOW
    assert of_slowness(Evidence(SLOW, host_slowness=0.05)).kind is CauseKind.WORKER_AGED


def test_beside_a_good_canary_only_context_or_reading_can_be_slow() -> None:
    said = "streams of 16000 prompt tokens and more run at 20.0 tok/s, the canary at 60.0: context, not age"
    assert of_slowness(Evidence(WELL, context=said)) == Cause(CauseKind.CONTEXT, (WELL.reason, said))
    assert of_slowness(Evidence(SLOW, context=said)).kind is CauseKind.WORKER_AGED
    asked_for = cause_of(Trigger.OPERATOR, Evidence(WELL, context=said), "it feels slow")
    assert asked_for == Cause(CauseKind.CONTEXT, ("it feels slow", WELL.reason, said))
    assert of_slowness(Evidence(replace(WELL, prefill=SLOW))).kind is CauseKind.PREFILL
    assert of_slowness(Evidence(WELL)).kind is CauseKind.UNKNOWN
    assert of_slowness(Evidence()).kind is CauseKind.UNKNOWN


@pytest.mark.parametrize(
    ("trigger", "kind"),
    [
        (Trigger.HUNG, CauseKind.HANG),
        (Trigger.CRASHED, CauseKind.CRASH),
        (Trigger.BAD_SPAWN, CauseKind.BAD_SPAWN),
        (Trigger.MEMORY, CauseKind.MEMORY_PRESSURE),
        (Trigger.OPERATOR, CauseKind.NONE),
    ],
)
def test_other_triggers_are_their_own_cause(trigger: Trigger, kind: CauseKind) -> None:
    assert cause_of(trigger, Evidence(), "because").kind is kind


def test_a_life_holds_what_is_now_against_its_first_judged_run_and_begins_anew_with_each_worker() -> None:
    life = Life()
    sample = Sample(0.0, 0.0, 1, 256, Purpose.ROUTINE, decode_tok_s=60.0)
    life.read(1, read(2 * GB))
    life.ran(sample, replace(WELL, status=Status.UNKNOWN))
    life.read(1, read(10 * GB))
    life.ran(sample, WELL)
    life.read(1, read(16 * GB))
    life.ran(sample, SLOW)
    evidence = life.evidence(SLOW)
    assert evidence.fresh is not None
    assert evidence.fresh.memory_bytes == 10 * GB, "a worker that was not judged yet may still be loading"
    assert evidence.first_ratio == 1.0
    assert of_slowness(evidence).kind is CauseKind.MEMORY_PRESSURE
    life.read(2, read())
    assert life.evidence(SLOW).fresh is None
