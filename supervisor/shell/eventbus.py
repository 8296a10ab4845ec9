"""What happens in the daemon, told to whoever listens: the page, `freshlane log -f`, `freshlane top`.

Publishing never waits. A listener that is too slow loses the oldest events and is told how many by a ``lagged`` event.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any

ROOM = 256
"""Events that wait for one listener, and past events that a returning listener can still get."""
LAGGED = "lagged"


@dataclass(frozen=True, slots=True)
class BusEvent:
    """One thing that happened. ``id`` is unique over daemon restarts; it is empty for a ``lagged`` event."""

    id: str
    kind: str
    document: Mapping[str, Any]


class EventBus:
    """Used on the event loop alone."""

    def __init__(self, room: int = ROOM) -> None:
        self._room = room
        self._boot = secrets.token_hex(4)
        self._count = 0
        self._past: deque[tuple[int, BusEvent]] = deque(maxlen=room)
        self._subscriptions: set[Subscription] = set()
        self._is_closed = False

    @property
    def listeners(self) -> int:
        """How many subscriptions are open."""
        return len(self._subscriptions)

    def publish(self, kind: str, document: Mapping[str, Any]) -> None:
        """Tell every listener; returns at once. ``document`` must not change afterwards."""
        self._count += 1
        event = BusEvent(f"{self._boot}-{self._count}", kind, document)
        self._past.append((self._count, event))
        for subscription in self._subscriptions:
            subscription.put(event)

    def subscribe(self, after: str | None = None) -> Subscription:
        """A listener for what happens from now on, or from after the event with the id ``after``.

        What can no longer be told (too long ago, or in an earlier daemon) is replaced by a ``lagged`` event.
        """
        subscription = Subscription(self, self._room)
        if after is not None:
            self._tell_missed(subscription, after)
        if self._is_closed:
            subscription.end()
        else:
            self._subscriptions.add(subscription)
        return subscription

    def leave(self, subscription: Subscription) -> None:
        """A listener has gone."""
        self._subscriptions.discard(subscription)

    def close(self) -> None:
        """End every subscription once it has read what is queued; later ones end at once."""
        self._is_closed = True
        for subscription in tuple(self._subscriptions):
            subscription.end()

    def _tell_missed(self, subscription: Subscription, after: str) -> None:
        boot, _, number = after.partition("-")
        if boot != self._boot or not number.isascii() or not number.isdigit():
            subscription.lose(None)
            return
        last_seen = min(int(number[:18]), self._count)
        missed = [event for count, event in self._past if count > last_seen]
        lost = self._count - last_seen - len(missed)
        if lost:
            subscription.lose(lost)
        for event in missed:
            subscription.put(event)


class Subscription:
    """An async iterator over events, and a context manager that leaves the bus at its end."""

    def __init__(self, bus: EventBus, room: int) -> None:
        self._bus = bus
        self._waiting: deque[BusEvent] = deque()
        self._room = room
        self._lost: int | None = 0
        """None: an unknown number."""
        self._is_ended = False
        self._news = asyncio.Event()

    def put(self, event: BusEvent) -> None:
        """Queue one event; the oldest one goes if there is no room."""
        if len(self._waiting) == self._room:
            self._waiting.popleft()
            self.lose(1)
        self._waiting.append(event)
        self._news.set()

    def lose(self, count: int | None) -> None:
        """Note that ``count`` events (None: an unknown number) will not be told."""
        self._lost = None if count is None or self._lost is None else self._lost + count
        self._news.set()

    def end(self) -> None:
        """No more events will come."""
        self._is_ended = True
        self._news.set()

    @property
    def is_over(self) -> bool:
        """Whether there is nothing to read, and never will be."""
        return self._is_ended and not self._waiting and self._lost == 0

    async def next(self, timeout_s: float) -> BusEvent | None:
        """The next event; None if there is none within ``timeout_s``, or at the end."""
        try:
            async with asyncio.timeout(timeout_s):
                return await anext(self, None)
        except TimeoutError:
            return None

    def __aiter__(self) -> Subscription:
        return self

    async def __anext__(self) -> BusEvent:
        await self._news.wait()
        if self._lost != 0:
            lost, self._lost = self._lost, 0
            event = BusEvent("", LAGGED, {"lost": lost})
        elif self._waiting:
            event = self._waiting.popleft()
        else:
            raise StopAsyncIteration
        if not self._waiting and not self._is_ended:
            self._news.clear()
        return event

    def __enter__(self) -> Subscription:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bus.leave(self)
