"""How long a fixed piece of work usually takes on this machine, and by how much it takes longer now."""

from __future__ import annotations

from collections import deque
from statistics import median

from supervisor.core.numbers import is_number

REMEMBERED = 600
"""Readings: about a day of them at the default cadence, two a run."""

KNOWN_FROM = 16
"""Fewer readings tell nothing."""

RECKONED_EVERY = 8

LEAST_SCATTER = 0.01
OF_MAD = 1.4826
"""Standard deviation over median absolute deviation, for a normal scatter."""

ANCHOR_AFTER_S = 86400.0
"""A machine that has been slow for this long on end is not slow: this is how fast it is now."""


class UsualTime:
    """Readings come as logarithms of seconds, times as monotonic seconds."""

    def __init__(self) -> None:
        self._usual: deque[float] = deque(maxlen=REMEMBERED)
        self._since_reckoned = 0
        self._middle = 0.0
        self._scatter = LEAST_SCATTER
        self._slow_since: float | None = None

    def add(self, log_s: float) -> None:
        """A reading beside a clean run of a worker that nobody suspects."""
        self._usual.append(log_s)
        self._since_reckoned += 1
        if self.is_known and self._since_reckoned >= RECKONED_EVERY:
            self._reckon()

    def _reckon(self) -> None:
        self._since_reckoned = 0
        self._middle = median(self._usual)
        self._scatter = max(OF_MAD * median(abs(each - self._middle) for each in self._usual), LEAST_SCATTER)

    @property
    def is_known(self) -> bool:
        """Whether there are readings enough."""
        return len(self._usual) >= KNOWN_FROM

    def excess(self, log_s: float) -> float:
        """By how much the reading is above the usual one; below 0 if the machine is faster than usual."""
        return log_s - self._middle if self.is_known else 0.0

    def slowness(self, log_s: float) -> float:
        """What stands out of the usual scatter; 0 where nothing does."""
        return max(self.excess(log_s) - self._scatter, 0.0)

    def found(self, at: float, *, is_slow: bool) -> None:
        """Whether the machine was found slow just now. After a day of nothing else, what is usual is learned anew."""
        if not is_slow:
            self._slow_since = None
        elif self._slow_since is None:
            self._slow_since = at
        elif at - self._slow_since >= ANCHOR_AFTER_S:
            self._usual.clear()
            self._since_reckoned = 0
            self._slow_since = None

    def to_json(self) -> list[float]:
        """What outlives the daemon."""
        return [round(each, 4) for each in self._usual]

    def restore(self, document: object) -> None:
        """Take up what ``to_json`` gave; anything that cannot be read is left out."""
        readings = document if isinstance(document, list) else []
        self._usual.extend(float(each) for each in readings if is_number(each))
        if self.is_known:
            self._reckon()
