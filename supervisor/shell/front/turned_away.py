"""Workers that a gate has turned away from and that it owes the word that they are empty; and those that have died."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from supervisor.shell.front.counts import Counts

LOSS_GRACE_S = 2.0
"""After a connection breaks it takes a moment until the worker's exit is known."""

REMEMBERED_DEATHS = 16


class TurnedAway:
    """By generation. ``look`` is called when one may be told to be empty that was not a moment ago."""

    def __init__(self, counts: Counts, look: Callable[[], None]) -> None:
        self._counts = counts
        self._look = look
        self._owed: set[int] = set()
        self._dead: deque[int] = deque(maxlen=REMEMBERED_DEATHS)
        self._looks_again: asyncio.TimerHandle | None = None

    def add(self, generation: int) -> None:
        """Nothing more is sent to it: once nothing is in flight on it, it is to be told."""
        self._owed.add(generation)

    def take_back(self, generation: int) -> None:
        """It is sent requests again."""
        self._owed.discard(generation)

    def died(self, generation: int) -> None:
        """Its exit says more than that it is empty."""
        self._owed.discard(generation)
        self._dead.append(generation)

    def is_dead(self, generation: int) -> bool:
        """Whether its process is known to be gone."""
        return generation in self._dead

    def take_empty(self) -> list[int]:
        """Those that have become empty, each once. One that has just broken a stream may be dead, not empty."""
        idle = [owed for owed in self._owed if not self._counts.of(owed).inflight]
        empty = [generation for generation in idle if not self._counts.broke_within(generation, LOSS_GRACE_S)]
        self._owed.difference_update(empty)
        if len(empty) < len(idle):
            self._look_again()
        return empty

    def _look_again(self) -> None:
        if self._looks_again is None:
            self._looks_again = asyncio.get_running_loop().call_later(LOSS_GRACE_S, self._look_now)

    def _look_now(self) -> None:
        self._looks_again = None
        self._look()
