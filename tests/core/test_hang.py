from __future__ import annotations

import pytest

from supervisor.core.health.hang import Fine, HangTerms, HangWatch, Hung, Progress, SendPulse

TERMS = HangTerms(after_s=90.0, pulse_s=60.0)


def busy(at: float, **more: float | int | tuple[float, ...]) -> Progress:
    return Progress(at, 1, **more)  # type: ignore[arg-type]


def watch() -> HangWatch:
    one = HangWatch(TERMS, 0.0)
    assert one.look(busy(0.0)) == Fine()
    return one


def test_requests_in_flight_and_nothing_moves_for_long_is_a_hang() -> None:
    one = watch()
    assert one.look(busy(89.0)) == Fine()
    finding = one.look(busy(91.0))
    assert isinstance(finding, Hung)
    assert "91 s" in finding.evidence


@pytest.mark.parametrize("moved", [{"moved_at": 80.0}, {"counters": (0.0, 1.0)}])
def test_a_byte_or_a_counter_is_progress(moved: dict[str, float | tuple[float, ...]]) -> None:
    one = watch()
    assert one.look(busy(80.0, **moved)) == Fine()
    assert one.look(busy(160.0, **moved)) == Fine()
    assert isinstance(one.look(busy(171.0, **moved)), Hung)


def test_half_a_core_is_progress_and_less_is_not() -> None:
    one = watch()
    one.look(busy(1.0, cpu_s=0.0))
    for at in range(10, 300, 10):
        assert one.look(busy(float(at), cpu_s=0.6 * at)) == Fine()
    idle = HangWatch(TERMS, 0.0)
    findings = [idle.look(busy(float(at), cpu_s=0.3 * at)) for at in range(0, 110, 10)]
    assert isinstance(findings[-1], Hung)


def test_a_long_prompt_earns_thrice_the_time_it_takes_to_read() -> None:
    one = watch()
    assert one.look(busy(110.0, oldest_prompt_tokens=10_000, prefill_tok_s=1000.0)) == Fine()
    finding = one.look(busy(121.0, oldest_prompt_tokens=10_000, prefill_tok_s=1000.0))
    assert isinstance(finding, Hung)


def test_the_wait_begins_when_the_request_does_not_when_the_last_one_ended() -> None:
    one = watch()
    one.look(Progress(10.0, 0))
    one.look(Progress(60.0, 0))
    assert one.look(busy(100.0)) == Fine()
    assert one.look(busy(189.0)) == Fine()
    assert isinstance(one.look(busy(190.0)), Hung)


def test_an_idle_worker_is_pulsed_now_and_then() -> None:
    one = HangWatch(TERMS, 0.0)
    one.look(Progress(0.0, 0))
    assert one.look(Progress(59.0, 0)) == Fine()
    assert one.look(Progress(60.0, 0)) == SendPulse()
    assert one.look(Progress(61.0, 0)) == Fine(), "one pulse at a time"
    one.pulse_answered(61.0)
    assert one.look(Progress(120.0, 0)) == Fine()
    assert one.look(Progress(121.0, 0)) == SendPulse()


def test_a_missed_pulse_is_repeated_at_once_and_two_mean_hung() -> None:
    one = HangWatch(TERMS, 0.0)
    one.look(Progress(0.0, 0))
    one.look(Progress(60.0, 0))
    assert one.pulse_missed(70.0, "no answer") == SendPulse()
    finding = one.pulse_missed(80.0, "no answer")
    assert isinstance(finding, Hung)
    assert "no answer" in finding.evidence


def test_an_answer_forgives_the_miss_before_it() -> None:
    one = HangWatch(TERMS, 0.0)
    one.look(Progress(0.0, 0))
    one.look(Progress(60.0, 0))
    one.pulse_missed(70.0, "late")
    one.pulse_answered(71.0)
    one.look(Progress(131.0, 0))
    assert one.pulse_missed(140.0, "late") == SendPulse()


def test_a_pulse_taken_back_for_a_client_says_nothing() -> None:
    one = HangWatch(TERMS, 0.0)
    one.look(Progress(0.0, 0))
    one.look(Progress(60.0, 0))
    one.pulse_taken_back()
    one.look(busy(62.0, busy_since=61.0))
    assert one.look(Progress(70.0, 0, moved_at=69.0)) == Fine(), "the client was answered, which is as good"
    assert one.look(Progress(128.0, 0, moved_at=69.0)) == Fine()
    assert one.look(Progress(129.0, 0, moved_at=69.0)) == SendPulse()


def test_clients_that_leave_unanswered_do_not_put_the_pulse_off() -> None:
    one = HangWatch(TERMS, 0.0)
    one.look(Progress(0.0, 0))
    assert one.look(Progress(60.0, 0)) == SendPulse()
    one.pulse_taken_back()
    one.look(busy(61.0, busy_since=60.5))
    assert one.look(Progress(120.0, 0)) == SendPulse()


def test_a_pulse_that_says_nothing_comes_again_in_its_time() -> None:
    one = HangWatch(TERMS, 0.0)
    one.look(Progress(60.0, 0))
    one.pulse_void(61.0)
    assert one.look(Progress(62.0, 0)) == Fine()
    assert one.look(Progress(121.0, 0)) == SendPulse()


def test_no_pulse_is_sent_beside_a_canary() -> None:
    one = HangWatch(TERMS, 0.0)
    assert one.look(Progress(60.0, 0, probe_silent_s=3.0)) == Fine()
    assert one.look(Progress(61.0, 0)) == SendPulse()


def test_a_canary_that_keeps_silent_as_long_as_a_pulse_might_is_a_missed_pulse() -> None:
    one = HangWatch(TERMS, 0.0)
    assert one.look(Progress(59.0, 0, probe_silent_s=40.0, pulse_timeout_s=30.0)) == Fine(), "no pulse is due yet"
    assert one.look(Progress(60.0, 0, probe_silent_s=29.0, pulse_timeout_s=30.0)) == Fine()
    assert one.look_in(60.0) == 1.0
    assert one.look(Progress(61.0, 0, probe_silent_s=30.0, pulse_timeout_s=30.0)) == SendPulse()
    assert isinstance(one.pulse_missed(91.0, "no answer"), Hung)


def test_newcomers_do_not_hide_that_none_is_answered() -> None:
    one = HangWatch(TERMS, 0.0)
    findings = [one.look(Progress(float(at), at // 10, busy_since=10.0)) for at in range(10, 102, 2)]
    assert findings[:-1] == [Fine()] * (len(findings) - 1)
    assert isinstance(findings[-1], Hung)


def test_an_answer_in_one_piece_earns_thrice_the_time_it_takes_to_write() -> None:
    one = watch()
    assert one.look(busy(110.0, expected_s=10.0)) == Fine()
    assert isinstance(one.look(busy(120.0, expected_s=10.0)), Hung)


def test_what_this_program_missed_is_no_silence_of_the_worker() -> None:
    one = watch()
    one.blind(60.0, 50.0)
    assert one.look(busy(139.0)) == Fine()
    assert isinstance(one.look(busy(140.0)), Hung)


def test_a_byte_from_before_this_program_stood_still_leaves_the_excuse_standing() -> None:
    one = watch()
    one.blind(100.0, 95.0)
    assert one.look(busy(100.0, moved_at=4.0)) == Fine()
    assert one.look(busy(188.0, moved_at=4.0)) == Fine()
    assert isinstance(one.look(busy(189.0, moved_at=4.0)), Hung)


def test_what_this_program_missed_before_a_byte_came_explains_no_later_silence() -> None:
    one = watch()
    one.blind(60.0, 50.0)
    assert one.look(busy(70.0, moved_at=65.0)) == Fine()
    assert isinstance(one.look(busy(155.0, moved_at=65.0)), Hung)


def test_the_next_look_comes_when_patience_ends_not_later() -> None:
    one = watch()
    assert one.look_in(0.0) == 2.0
    assert one.look_in(89.5) == 0.5
    idle = HangWatch(TERMS, 0.0)
    assert idle.look_in(59.0) == 1.0
    quick = HangWatch(HangTerms(after_s=3.0, pulse_s=2.0), 0.0)
    assert quick.look_in(0.0) == 0.5


def test_traffic_between_two_looks_puts_the_pulse_off() -> None:
    one = HangWatch(TERMS, 0.0)
    one.look(Progress(0.0, 0))
    one.look(Progress(50.0, 0, moved_at=50.0))
    assert one.look(Progress(100.0, 0, moved_at=50.0)) == Fine()
    assert one.look(Progress(110.0, 0, moved_at=50.0)) == SendPulse()
