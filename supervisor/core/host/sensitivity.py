"""How much of the machine's slowness, as its reference shows it, a lane's worker feels. Learned from their company.

A worker that computes on the GPU may not feel at all what slows the processor; one that waits for memory may feel twice
of it. Only what stands out of the reference's scatter teaches: what a worker makes of noise says nothing of what it
makes of a slow machine.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from statistics import median
from typing import Any

from supervisor.core.numbers import number_in

PRIOR = 0.25
"""Sum of squared slowness after which the lane's own runs count for as much as the first guess: one reading at 1.6
times the usual time, or twenty-five at 1.1 times.
"""

FIRST_GUESS = 1.0
MOST = 2.0
KEPT = 0.999
"""Of what was learned, from run to run."""

LEVEL_RUNS = 60
LEVEL_FROM = 5
FARTHEST = 0.5
"""No single run, and no single reading, is believed to be off by more than this (logarithm)."""


class Sensitivity:
    """One lane's. ``factor`` times what the reference shows is what the worker feels."""

    def __init__(self) -> None:
        self._together = 0.0
        self._squares = 0.0
        self._levels: dict[int, deque[float]] = {}

    @property
    def factor(self) -> float:
        """Between 0 and 2."""
        learned = (FIRST_GUESS * PRIOR + self._together) / (PRIOR + self._squares)
        return min(max(learned, 0.0), MOST)

    def learn(self, size: int, log_rate: float, shown: float, *, is_slow: bool) -> None:
        """A run, and the slowness that the reference showed meanwhile (logarithms).

        ``is_slow``: the machine was; such a run does not show how fast the worker is otherwise.
        """
        level = self._levels.setdefault(size, deque(maxlen=LEVEL_RUNS))
        if len(level) >= LEVEL_FROM:
            shown, felt = _clipped(shown), _clipped(median(level) - log_rate)
            self._squares = KEPT * self._squares + shown * shown
            self._together = KEPT * self._together + shown * felt
        if not is_slow:
            level.append(log_rate)

    def to_json(self) -> dict[str, Any]:
        """What outlives the daemon."""
        return {"together": self._together, "squares": self._squares}

    def restore(self, document: object) -> None:
        """Take up what ``to_json`` gave; anything that cannot be read is left out."""
        if isinstance(document, Mapping):
            self._together = number_in(document, "together", 0.0)
            self._squares = max(number_in(document, "squares", 0.0), 0.0)


def _clipped(value: float) -> float:
    return min(max(value, -FARTHEST), FARTHEST)
