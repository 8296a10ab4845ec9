"""How a lane's runs scatter from one visit to the next, beyond what each run scatters by itself.

Neighbouring visits share what the host does meanwhile, and a detector that takes them for independent convicts the
innocent. What matters is the long-run variance: what the mean of many visits scatters by. It is measured on the means
of blocks of runs, by their second differences, in which a steady trend (ageing) cancels, and held against what the runs
of one block scatter by among themselves. So slow outliers, which raise both alike, are not taken for something shared.
Until there are enough runs a moderate value is believed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from statistics import median
from typing import Any, NamedTuple

from supervisor.core.numbers import is_number
from supervisor.core.speed.ranks import MAD_TO_SD, PRIOR_SD

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
BELIEVED = 1 + SHARED_VARIANCE / PRIOR_SD**2
"""The same as a multiple of the variance that single runs are believed to have."""

PRIOR_WEIGHT = 4
"""How many differences of blocks that belief is worth."""

BLOCKS_COMPARED = 3

MOST_REMEMBERED = 125
"""Differences of blocks after which older ones begin to fade."""

LARGEST = 9.0
"""Of a squared difference, in multiples of what it is now believed to be: a step is not noise."""

MOMENT_SHARED = 3.0
"""What visits surely share, the runs of a burst share among themselves, too, and single runs cannot tell how much: so
many times it is added to a burst's variance.
"""

OF_MEDIAN = {3: 0.4487, 5: 0.2868}
"""Variance of the median of so many normal runs over the variance of one."""


class LaneNoise:
    """Learned over the lives of a lane's workers; lengths are of log rates, in standard deviations of a single run."""

    def __init__(self) -> None:
        self._block: list[float] = []
        self._last: list[_Block] = []
        """The last blocks of this life, three at most."""
        self._seen = _Seen()
        self._found = self._seen.findings()
        self._runs = 0

    @property
    def is_measured(self) -> bool:
        """Whether enough runs are in to trust it."""
        return self._runs >= RUNS_THAT_MEASURE and self._seen.count >= DIFFERENCES_THAT_MEASURE

    def new_life(self) -> None:
        """Another worker: its level may be another one, so no block goes across."""
        self._block, self._last = [], []

    def add(self, slowness: float, sd: float) -> None:
        """One routine run: how far it lies below fresh, and the standard deviation of a single run."""
        self._runs += 1
        self._block.append(_near(slowness / sd, self._last[-1].mean if self._last else 0.0))
        if len(self._block) < BLOCK:
            return
        self._last = [*self._last[-2:], _Block.of(self._block)]
        self._block = []
        if len(self._last) == BLOCKS_COMPARED:
            self._seen.take(self._last)
            self._found = self._seen.findings()

    @property
    def inflation(self) -> float:
        """Long-run variance over the variance of one run, outliers left aside, and a margin."""
        return 1.0 + self._found.shared / self._found.bulk

    def own_variance(self, sd: float) -> float:
        """Of a single run; ``sd`` is what its fresh runs, of which there are fewer, scatter by."""
        return (self._found.bulk if self.is_measured else 1.0) * sd * sd

    def shared_variance(self, sd: float) -> float:
        """What is to be added to a run's or a burst's own variance for what visits share."""
        if not self.is_measured:
            return SHARED_VARIANCE
        return self._found.shared * sd * sd

    def sd_of(self, runs: int, sd: float) -> float:
        """Standard deviation that an observation of so many runs is judged with: one run, or a burst's median."""
        own, shared = self.own_variance(sd), self.shared_variance(sd)
        if runs == 1:
            return math.sqrt(own + shared)
        moment = MOMENT_SHARED * self._found.certain * sd * sd if self.is_measured else 0.0
        return math.sqrt(OF_MEDIAN[runs] * own + shared + moment)

    def to_json(self) -> dict[str, Any]:
        """What outlives the daemon."""
        return {**asdict(self._seen), "runs": self._runs}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> LaneNoise:
        """What ``to_json`` gave; anything else makes a new one."""
        noise = cls()
        names = [each.name for each in fields(_Seen)]
        values = [document.get(name) for name in (*names, "runs")]
        if all(is_number(value) and value >= 0 for value in values):
            *seen, runs = (float(value) for value in values)  # type: ignore[arg-type]
            noise._seen, noise._runs = _Seen(*seen), int(runs)
            noise._found = noise._seen.findings()
        return noise


class _Block(NamedTuple):
    mean: float
    variance: float
    """Of its runs."""
    bulk: float
    """The same by the median absolute deviation, which a few outliers hardly raise."""

    @classmethod
    def of(cls, scores: Sequence[float]) -> _Block:
        """Scores of neighbouring runs."""
        middle, mean = median(scores), sum(scores) / len(scores)
        deviation = MAD_TO_SD * median([abs(score - middle) for score in scores])
        squares = sum([(score - mean) ** 2 for score in scores])
        return cls(mean, squares / (len(scores) - 1), deviation * deviation)


class _Findings(NamedTuple):
    """Ratios of variances, over that of a lane's fresh runs."""

    shared: float
    """The long-run variance beyond what runs of one block scatter by, and a margin for what is not known of it."""
    certain: float
    """The same with the margin taken off: what is surely shared."""
    bulk: float
    """What single runs scatter by but for outliers."""


@dataclass
class _Seen:
    """Sums over all differences of blocks."""

    between: float = 0.0
    """Of squared second differences of means, scaled so that independent runs give their variance."""
    within: float = 0.0
    """Of the variance inside a block."""
    bulk: float = 0.0
    count: float = 0.0

    def take(self, blocks: Sequence[_Block]) -> None:
        """Three blocks that followed each other."""
        first, second, third = (block.mean for block in blocks)
        square = BLOCK * (first - 2 * second + third) ** 2 / 6
        self.between += min(square, LARGEST * self._mean(self.between, BELIEVED))
        self.within += sum([block.variance for block in blocks]) / len(blocks)
        self.bulk += sum([block.bulk for block in blocks]) / len(blocks)
        self.count += 1
        if self.count > MOST_REMEMBERED:
            keep = MOST_REMEMBERED / self.count
            self.between, self.within, self.bulk = self.between * keep, self.within * keep, self.bulk * keep
            self.count = MOST_REMEMBERED

    def _mean(self, total: float, believed: float) -> float:
        return (PRIOR_WEIGHT * believed + total) / (PRIOR_WEIGHT + self.count)

    def findings(self) -> _Findings:
        """What they come to."""
        error = 1 / math.sqrt(PRIOR_WEIGHT + self.count) if self.count else 0.0
        between, within = self._mean(self.between, BELIEVED), self._mean(self.within, 1.0)
        return _Findings(
            shared=max(between * (1 + error) - within, 0.0),
            certain=max(between * (1 - error) - within, 0.0),
            bulk=self._mean(self.bulk, 1.0),
        )


def _near(score: float, level: float) -> float:
    """Clipped around where the runs have been lying, for an aged worker is no outlier."""
    return min(max(score, level - FARTHEST), level + FARTHEST)
