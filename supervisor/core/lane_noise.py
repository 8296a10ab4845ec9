"""How a lane's runs scatter from one visit to the next, beyond what each run scatters by itself.

Neighbouring visits share what the host does meanwhile, and a detector that takes them for independent convicts the
innocent. What matters is the long-run variance: what the mean of many visits scatters by. It is measured on the means
of blocks of runs, by their second differences, in which a steady trend (ageing) cancels. Until there are enough runs
a moderate value is believed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

BLOCK = 20
RUNS_THAT_MEASURE = 200
DIFFERENCES_THAT_MEASURE = 6

FARTHEST = 4.0
"""Standard deviations beyond which a run counts as an outlier, which is not what visits share."""

SHARED_SD, SHARED_CORRELATION = 0.04, 0.3
"""What is believed of the part that neighbouring visits share: its standard deviation, and its correlation from one
to the next.
"""
SHARED_VARIANCE = SHARED_SD**2 * (1 + SHARED_CORRELATION) / (1 - SHARED_CORRELATION)

PRIOR_WEIGHT = 4
"""How many differences of blocks that belief is worth."""

MOST_REMEMBERED = 125
"""Differences of blocks after which older ones begin to fade."""

LARGEST = 9.0
"""Of a squared difference, in multiples of what it is now believed to be: a step is not noise."""

CORRELATED = 2.3
MOMENT_SHARED = 2.0
"""Where visits are seen to share much, a burst shares its moment with the runs before it, too: that counts twice."""

OF_MEDIAN = {3: 0.4487, 5: 0.2868}
"""Variance of the median of so many normal runs over the variance of one."""


class LaneNoise:
    """Learned over the lives of a lane's workers; lengths are of log rates."""

    def __init__(self) -> None:
        self._block: list[float] = []
        self._means: list[float] = []
        self._sum = 0.0
        self._count = 0.0
        self._runs = 0

    @property
    def is_measured(self) -> bool:
        """Whether enough runs are in to trust it."""
        return self._runs >= RUNS_THAT_MEASURE and self._count >= DIFFERENCES_THAT_MEASURE

    def new_life(self) -> None:
        """Another worker: its level may be another one, so no block goes across."""
        self._block, self._means = [], []

    def add(self, slowness: float, sd: float) -> None:
        """One routine run: how far it lies below fresh, and the standard deviation of a single run."""
        self._runs += 1
        self._block.append(_near(slowness / sd, self._means[-1] if self._means else 0.0))
        if len(self._block) < BLOCK:
            return
        self._means = [*self._means[-2:], sum(self._block) / BLOCK]
        self._block = []
        if len(self._means) == 3:
            first, second, third = self._means
            self._took(BLOCK * (first - 2 * second + third) ** 2 / 6)

    def _took(self, square: float) -> None:
        self._sum += min(square, LARGEST * self.inflation)
        self._count += 1
        if self._count > MOST_REMEMBERED:
            keep = MOST_REMEMBERED / self._count
            self._sum, self._count = self._sum * keep, self._count * keep

    @property
    def inflation(self) -> float:
        """Long-run variance over the variance of one run, and a standard error more."""
        believed = 1 + SHARED_VARIANCE / 0.14**2
        if not self._count:
            return believed
        known = PRIOR_WEIGHT + self._count
        return (PRIOR_WEIGHT * believed + self._sum) / known * (1 + 1 / math.sqrt(known))

    def shared_variance(self, sd: float) -> float:
        """What is to be added to a run's or a burst's own variance for what visits share."""
        if not self.is_measured:
            return SHARED_VARIANCE
        return max(self.inflation - 1.0, 0.0) * sd * sd

    def sd_of(self, runs: int, sd: float) -> float:
        """Standard deviation that an observation of so many runs is judged with: one run, or a burst's median."""
        if runs == 1:
            return math.sqrt(sd * sd + self.shared_variance(sd))
        times = MOMENT_SHARED if self.is_measured and self.inflation > CORRELATED else 1.0
        return math.sqrt(OF_MEDIAN[runs] * sd * sd + times * self.shared_variance(sd))

    def to_json(self) -> dict[str, Any]:
        """What outlives the daemon."""
        return {"sum": self._sum, "count": self._count, "runs": self._runs}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> LaneNoise:
        """What ``to_json`` gave; anything else makes a new one."""
        noise = cls()
        values = [document.get(key) for key in ("sum", "count", "runs")]
        if all(isinstance(value, int | float) and math.isfinite(value) and value >= 0 for value in values):
            noise._sum, noise._count, noise._runs = float(values[0]), float(values[1]), int(values[2])  # type: ignore[arg-type]
        return noise


def _near(score: float, level: float) -> float:
    """Clipped around where the runs have been lying, for an aged worker is no outlier."""
    return min(max(score, level - FARTHEST), level + FARTHEST)
