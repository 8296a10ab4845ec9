"""What a step of speculation yields over a worker's life, and whether that is what made it slow."""

from __future__ import annotations

from collections import deque
from statistics import median

RUNS = 5
BARREN = 0.9
"""Steps that give less than this share of what they gave at first have lost something."""

EXPLAINS = 0.85
"""If the steps are as fast as this share of what they were, it is their yield that made the worker slow."""


class StepYield:
    """What one worker's runs told at first, and last: tokens per step, or the rate without speculation."""

    def __init__(self) -> None:
        self._first: list[float] = []
        self._last: deque[float] = deque(maxlen=RUNS)

    def add(self, value: float | None) -> None:
        """One run's; None where it is not known."""
        if value is None or value <= 0:
            return
        if len(self._first) < RUNS:
            self._first.append(value)
        self._last.append(value)

    @property
    def first_and_last(self) -> tuple[float, float] | None:
        """Medians of the first and the last runs; None while there are too few."""
        return None if len(self._last) < RUNS else (median(self._first), median(self._last))


def is_the_reason(tokens_per_step: tuple[float, float] | None, ratio: float | None) -> bool:
    """Whether a rate at ``ratio`` of fresh is explained by what steps yield, so that their time has hardly changed."""
    if tokens_per_step is None or ratio is None:
        return False
    first, last = tokens_per_step
    kept = last / first
    return kept < BARREN and ratio / kept > EXPLAINS


def is_only_slow_with_speculation(plain_tok_s: tuple[float, float] | None, ratio: float | None) -> bool:
    """Whether a worker at ``ratio`` of fresh is about as fast as ever once it does not speculate."""
    if plain_tok_s is None or ratio is None:
        return False
    first, last = plain_tok_s
    return ratio < BARREN and last / first > EXPLAINS
