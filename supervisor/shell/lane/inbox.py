"""Events that wait for a lane's runner, in order. A reading that waits already is not taken in again.

A runner can be slow, on a disk that hangs for instance. Requests and readings go on meanwhile, and one of each kind
that waits says as much as a thousand. What a person asks is refused before too much of it waits.
"""

from __future__ import annotations

import asyncio

from supervisor.core.lane import events as ev

MOST_WISHES = 100
"""Events that may wait before a person is told to come again."""


class Inbox:
    """First in, first out."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[ev.Event] = asyncio.Queue()
        self._readings: set[tuple[str, int]] = set()

    def __len__(self) -> int:
        return self._queue.qsize()

    @property
    def is_crowded(self) -> bool:
        """Whether nobody should ask for anything more now."""
        return len(self) >= MOST_WISHES

    def put(self, event: ev.Event) -> None:
        """Take it in."""
        reading = _reading_of(event)
        if reading in self._readings:
            return
        if reading is not None:
            self._readings.add(reading)
        self._queue.put_nowait(event)

    async def get(self) -> ev.Event:
        """The one that has waited longest."""
        event = await self._queue.get()
        if reading := _reading_of(event):
            self._readings.discard(reading)
        return event


def _reading_of(event: ev.Event) -> tuple[str, int] | None:
    """What the event is one more of; None: each such event counts."""
    match event:
        case ev.RequestHeld():
            return "held", 0
        case ev.WorkerMeasured(generation=generation):
            return "measured", generation
        case _:
            return None
