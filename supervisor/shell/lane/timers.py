"""The timers of one lane, on the event loop's monotonic clock."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

from supervisor.core.terms import TimerName


class Timers:
    """One timer a name; arming again replaces."""

    def __init__(self, fire: Callable[[TimerName], None]) -> None:
        self._fire = fire
        self._handles: dict[TimerName, asyncio.TimerHandle] = {}

    def arm(self, name: TimerName, after_s: float, jitter: float = 0.0) -> None:
        """Call ``fire(name)`` in ``after_s`` seconds, stretched by up to the share ``jitter``."""
        self.disarm(name)
        stretched = after_s * (1.0 + random.uniform(0.0, jitter))  # noqa: S311 - spreads restarts, guards no secret
        self._handles[name] = asyncio.get_running_loop().call_later(stretched, self._due, name)

    def disarm(self, name: TimerName) -> None:
        """Forget the timer, armed or not."""
        handle = self._handles.pop(name, None)
        if handle:
            handle.cancel()

    def disarm_all(self) -> None:
        """Forget every timer."""
        for name in tuple(self._handles):
            self.disarm(name)

    def _due(self, name: TimerName) -> None:
        self._handles.pop(name, None)
        self._fire(name)
