"""The event bus: nobody waits for a slow listener, and a listener knows what it has missed."""

from __future__ import annotations

import asyncio

import pytest

from supervisor.shell.eventbus import BusEvent, EventBus, Subscription


async def read(subscription: Subscription, count: int) -> list[BusEvent]:
    async with asyncio.timeout(5):
        return [await anext(subscription) for _ in range(count)]


async def test_every_listener_hears_every_event_in_order() -> None:
    bus = EventBus()
    with bus.subscribe() as one, bus.subscribe() as other:
        for number in range(3):
            bus.publish("state", {"number": number})
        for subscription in (one, other):
            events = await read(subscription, 3)
            assert [(event.kind, event.document["number"]) for event in events] == [("state", n) for n in range(3)]
        assert bus.listeners == 2
    assert bus.listeners == 0


async def test_a_slow_listener_loses_the_oldest_events_and_is_told_how_many() -> None:
    bus = EventBus(room=4)
    with bus.subscribe() as subscription:
        for number in range(10):
            bus.publish("sample", {"number": number})
        lagged, *rest = await read(subscription, 5)
        assert (lagged.kind, lagged.document) == ("lagged", {"lost": 6})
        assert [event.document["number"] for event in rest] == [6, 7, 8, 9]
        assert await subscription.next(timeout_s=0.01) is None


async def test_a_listener_that_comes_back_gets_what_it_missed() -> None:
    bus = EventBus(room=4)
    bus.publish("state", {"number": 0})
    with bus.subscribe() as subscription:
        bus.publish("state", {"number": 1})
        [seen] = await read(subscription, 1)
    bus.publish("state", {"number": 2})
    with bus.subscribe(after=seen.id) as subscription:
        [missed] = await read(subscription, 1)
        assert missed.document == {"number": 2}
    for number in range(3, 9):
        bus.publish("state", {"number": number})
    with bus.subscribe(after=seen.id) as subscription:
        lagged, first, *_ = await read(subscription, 5)
        assert (lagged.document, first.document) == ({"lost": 3}, {"number": 5})


@pytest.mark.parametrize("foreign", ["", "17", "0000-2", "garbage-", "-", "x-٣"])
async def test_an_id_of_another_daemon_means_that_events_may_be_lost(foreign: str) -> None:
    bus = EventBus()
    bus.publish("state", {})
    with bus.subscribe(after=foreign) as subscription:
        [lagged] = await read(subscription, 1)
        assert (lagged.kind, lagged.document) == ("lagged", {"lost": None})
        bus.publish("state", {"number": 1})
        [event] = await read(subscription, 1)
        assert event.document == {"number": 1}


async def test_a_closed_bus_lets_listeners_finish_and_then_ends_them() -> None:
    bus = EventBus()
    with bus.subscribe() as subscription:
        bus.publish("state", {"number": 1})
        bus.close()
        async with asyncio.timeout(5):
            assert [event.document async for event in subscription] == [{"number": 1}]
    with bus.subscribe() as late:
        async with asyncio.timeout(5):
            assert [event async for event in late] == []
    assert bus.listeners == 0
