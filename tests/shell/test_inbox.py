"""Events that wait for a lane's runner."""

from __future__ import annotations

from supervisor.core.lane import events as ev
from supervisor.shell.lane.inbox import MOST_WISHES, Inbox


async def test_events_come_out_in_the_order_in_which_they_came() -> None:
    inbox = Inbox()
    events = [ev.StopAsked(1.0), ev.RequestHeld(2.0), ev.StartAsked(3.0)]
    for event in events:
        inbox.put(event)
    assert [await inbox.get() for _ in events] == events


async def test_readings_and_held_requests_that_wait_for_a_slow_runner_do_not_pile_up() -> None:
    inbox = Inbox()
    for at in range(10_000):
        inbox.put(ev.RequestHeld(float(at)))
        inbox.put(ev.WorkerMeasured(float(at), 1 + at % 2, memory_bytes=0, requests=0, generated_tokens=0))
    assert len(inbox) == 3


async def test_a_reading_that_was_taken_out_makes_way_for_the_next() -> None:
    inbox = Inbox()
    inbox.put(ev.RequestHeld(1.0))
    await inbox.get()
    inbox.put(ev.RequestHeld(2.0))
    assert await inbox.get() == ev.RequestHeld(2.0)


async def test_what_a_person_asks_is_never_dropped_and_too_much_of_it_is_seen() -> None:
    inbox = Inbox()
    for at in range(MOST_WISHES):
        assert not inbox.is_crowded
        inbox.put(ev.ProbeAsked(float(at)))
    assert inbox.is_crowded
    assert len(inbox) == MOST_WISHES
