"""The last runs of one worker at one prompt size, and what counting sides says of them. Rates are tokens/s."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from statistics import median

from supervisor.core.samples import Status

KEPT = 16
MILD_HITS = 14
SEVERE_KEPT = 8
SEVERE_HITS = 7

RECENT = 5
"""Runs whose median makes or lifts a suspicion."""
RECENT_HITS = 4


class Window:
    """``status`` is what the judge thinks of the worker at this size; the rest is arithmetic."""

    def __init__(self) -> None:
        self.status = Status.UNKNOWN
        self.best_tok_s = 0.0
        """The fastest run of this life."""
        self._rates: deque[float] = deque(maxlen=KEPT)

    def add(self, rate: float) -> None:
        """Take one run in."""
        self._rates.append(rate)
        self.best_tok_s = max(self.best_tok_s, rate)

    @property
    def has_recent(self) -> bool:
        """Whether there are enough runs for ``recent_tok_s`` to mean something."""
        return len(self._rates) >= RECENT

    @property
    def recent_tok_s(self) -> float:
        """Median of the last five."""
        return median(self._last(RECENT))

    @property
    def typical_tok_s(self) -> float:
        """Median of the last eight."""
        return median(self._last(SEVERE_KEPT))

    def is_severe(self, limit: float) -> bool:
        """Whether nearly all of the last eight runs lie below ``limit``."""
        return hits(self._last(SEVERE_KEPT), limit) >= SEVERE_HITS

    def is_mild(self, limit: float) -> bool:
        """Whether nearly all of the last sixteen runs lie below ``limit``."""
        return hits(self._rates, limit) >= MILD_HITS

    def is_strange(self, limit: float, limit_of_one: float) -> bool:
        """Whether the newest run alone, or most of the last five, ask for a closer look."""
        return self._rates[-1] < limit_of_one or hits(self._last(RECENT), limit) >= RECENT_HITS

    def evidence(self, *, is_mild: bool) -> tuple[float, ...]:
        """The runs that ``status`` rests on, oldest first."""
        if self.status is Status.SUSPECT:
            return self._last(RECENT)
        return tuple(self._rates) if is_mild else self._last(SEVERE_KEPT)

    def _last(self, count: int) -> tuple[float, ...]:
        return tuple(self._rates)[-count:]


def hits(rates: Sequence[float], limit: float) -> int:
    """How many lie below ``limit``."""
    return sum(rate < limit for rate in rates)
