"""When this program did not run on time: a busy loop, a suspended machine, a stepped clock.

What was measured over such a moment says nothing about a worker.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable

EVERY_S = 0.25
REMEMBERED = 1000
LEAST_GAP_S = 0.5
"""Below this, the two clocks only drift apart, as under NTP."""


class Worst:
    """The largest of a stream of numbers since any moment. An earlier number that a later one exceeds is forgotten."""

    def __init__(self) -> None:
        self._falling: deque[tuple[float, float]] = deque(maxlen=REMEMBERED)

    def add(self, at: float, size: float) -> None:
        """``size`` was seen at the monotonic moment ``at``."""
        while self._falling and self._falling[-1][1] <= size:
            self._falling.pop()
        self._falling.append((at, size))

    def since(self, at: float) -> float:
        """The largest since ``at``; 0 if there was none."""
        return next((size for seen, size in self._falling if seen >= at), 0.0)

    def part_since(self, at: float) -> float:
        """The same, each number taken as a time that ended when it was seen: only what of it lay after ``at``."""
        return max((min(size, seen - at) for seen, size in self._falling if seen >= at), default=0.0)


class LoopLag:
    """How late the event loop runs what is due, sampled every 0.25 s."""

    def __init__(self, every_s: float = EVERY_S) -> None:
        self.on_sample: Callable[[float], None] = lambda _: None
        """Called with the monotonic moment of each sample."""
        self._every_s = every_s
        self._worst = Worst()
        self._due = 0.0
        self._handle: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Begin to sample, on the running loop."""
        self._due = time.monotonic()
        self._sample()

    def close(self) -> None:
        """Sample no more."""
        if self._handle:
            self._handle.cancel()
            self._handle = None

    def worst_since(self, at: float) -> float:
        """The longest delay in seconds since the monotonic moment ``at``, one that is under way included.

        Of one that had begun before, only the rest counts: who asks again after each look hears of it once.
        """
        now = time.monotonic()
        under_way = min(now - self._due, now - at) if self._handle else 0.0
        return max(self._worst.part_since(at), under_way, 0.0)

    def _sample(self) -> None:
        now = time.monotonic()
        self._worst.add(now, max(0.0, now - self._due))
        self.on_sample(now)
        self._due = now + self._every_s
        self._handle = asyncio.get_running_loop().call_later(self._every_s, self._sample)


class ClockGaps:
    """Moments at which wall clock and monotonic clock moved apart: a suspend, or a clock that was set."""

    def __init__(self) -> None:
        self._worst = Worst()
        self._offset = _wall() - time.monotonic()

    def sample(self, now: float) -> None:
        """Compare the clocks; ``now`` is the monotonic one."""
        offset = _wall() - now
        gap = abs(offset - self._offset)
        self._offset = offset
        if gap >= LEAST_GAP_S:
            self._worst.add(now, gap)

    def gap_since(self, at: float) -> float:
        """The largest gap in seconds since the monotonic moment ``at``; 0 if the clocks ran together."""
        self.sample(time.monotonic())
        return self._worst.since(at)


def _wall() -> float:
    """Only ever compared with itself: no duration is measured by it."""
    return time.clock_gettime(time.CLOCK_REALTIME)
