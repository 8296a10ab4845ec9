"""At the defaults a hang is found within two minutes, whenever it begins and whatever was out at that moment."""

from __future__ import annotations

import pytest

from supervisor.core.health.hang import Fine, HangTerms, HangWatch, Hung, Progress, SendPulse

FOUND_WITHIN_S = 120.0
PULSE_TIMEOUT_S = 30.0
"""The longest that a lane's canary.timeout grows to by itself."""


def found_idle(hangs_at: float, canary_at: float | None = None) -> float:
    """How long after `hangs_at` an idle worker is found, by the looks that the watch asks for.

    Every pulse before that is answered at once. A canary that begins at `canary_at` gets nothing and gives up by
    itself only long after.
    """
    watch, at = HangWatch(HangTerms(), 0.0), 0.0
    canary_ended = False
    while at < hangs_at + 1000.0:
        silent_s = None if canary_at is None or canary_ended or at < canary_at else at - canary_at
        finding = watch.look(Progress(at, 0, probe_silent_s=silent_s, pulse_timeout_s=PULSE_TIMEOUT_S))
        canary_ended = canary_ended or (silent_s is not None and not isinstance(finding, Fine))
        while isinstance(finding, SendPulse):
            if at < hangs_at:
                watch.pulse_answered(at)
                finding = Fine()
            else:
                at += PULSE_TIMEOUT_S
                finding = watch.pulse_missed(at, "no answer")
        if isinstance(finding, Hung):
            return at - hangs_at
        at += watch.look_in(at)
    raise AssertionError("not found")


@pytest.mark.parametrize("hangs_at", [0.01, 1.0, 29.9, 59.9, 60.1, 119.9, 1000.0])
def test_an_idle_worker_that_hangs_is_found_within_two_minutes(hangs_at: float) -> None:
    assert found_idle(hangs_at) <= FOUND_WITHIN_S


@pytest.mark.parametrize("canary_at", [0.02, 30.0, 45.0, 59.9, 60.0])
def test_so_it_is_if_a_canary_is_out(canary_at: float) -> None:
    assert found_idle(0.01, canary_at) <= FOUND_WITHIN_S


@pytest.mark.parametrize("arrives_s_before_a_look", [0.0, 0.1, 1.0, 1.9])
@pytest.mark.parametrize("prefill_s", [0.0, 1.0, 9.9])
def test_a_worker_that_hangs_on_a_request_is_found_within_two_minutes_if_its_prompt_takes_less_than_10_s(
    arrives_s_before_a_look: float, prefill_s: float
) -> None:
    watch, at = HangWatch(HangTerms(), 0.0), 10.0
    began = at - arrives_s_before_a_look
    watch.look(Progress(5.0, 0))
    prompt = {"oldest_prompt_tokens": int(prefill_s * 1000), "prefill_tok_s": 1000.0}
    while isinstance(watch.look(Progress(at, 1, busy_since=began, **prompt)), Fine):  # type: ignore[arg-type]
        assert at < 1000.0
        at += watch.look_in(at)
    assert at - began <= FOUND_WITHIN_S
    assert at - began >= 90.0 + 3 * prefill_s - 0.1, "and not before its patience is over"
