"""The evidence that a worker has slowed down, as one number R: a mixture Shiryaev-Roberts statistic.

Each run brings a score, how many standard deviations it lies below fresh, clipped so that no single run counts for
much. R <- (R + 1) exp(slope x score - offset), for four slopes at once. The offset is the logarithm of what
exp(slope x score) is on average in the worst harmless world: 6 % slower than the baseline says, and a few runs
arbitrarily slow. So in that world R grows by at most 1 a run on average, and the mean time until it reaches A is at
least A runs, however often one looks.
"""

from __future__ import annotations

import math
from functools import lru_cache

SLOPES = (0.5, 1.0, 1.6, 2.4)
"""Small ones find a slight slowdown that lasts, large ones a heavy one at once."""

CLIP = 3.0
HARMLESS = math.log(1.06)
"""A mean this far below the baseline is nobody's fault."""

SLOW_RUNS = 0.05
SLOW_MEDIANS = 0.01
"""Shares of single runs, and of burst medians, that may be arbitrarily slow without any harm."""

SD_STEP = 0.001
HIGHEST = 1e12
"""R is not counted beyond, so that it stays a finite number."""


def offsets(sd: float, slow_share: float) -> tuple[float, ...]:
    """For each slope what is taken off a score whose noise has this standard deviation (of the logarithm of a rate)."""
    return _offsets(math.ceil(sd / SD_STEP), slow_share)


@lru_cache(maxsize=4096)
def _offsets(sd_steps: int, slow_share: float) -> tuple[float, ...]:
    shift = HARMLESS / (sd_steps * SD_STEP)
    return tuple(
        math.log((1 - slow_share) * clipped_mean(slope, shift) + slow_share * math.exp(slope * CLIP))
        for slope in SLOPES
    )


def clipped_mean(slope: float, shift: float) -> float:
    """The mean of exp(slope x clip(Z + shift)) for a standard normal Z, in closed form."""
    below = math.exp(-slope * CLIP) * _normal(-CLIP - shift)
    above = math.exp(slope * CLIP) * _normal(shift - CLIP)
    between = _normal(CLIP - shift - slope) - _normal(-CLIP - shift - slope)
    return below + above + math.exp(slope * shift + slope * slope / 2) * between


def _normal(z: float) -> float:
    return 0.5 * math.erfc(-z / math.sqrt(2))


def factors(score: float, taken_off: tuple[float, ...]) -> tuple[float, ...]:
    """What one observation multiplies the evidence by, for each slope.

    ``score`` is in standard deviations below fresh, ``taken_off`` the ``offsets`` for its noise.
    """
    clipped = min(max(score, -CLIP), CLIP)
    return tuple([math.exp(slope * clipped - off) for slope, off in zip(SLOPES, taken_off, strict=True)])


class Mixture:
    """One such statistic; ``value`` is R."""

    def __init__(self) -> None:
        self.value = 0.0
        """R: the mean over the slopes."""
        self._parts = [0.0] * len(SLOPES)

    def feed(self, by: tuple[float, ...]) -> None:
        """One observation, as its ``factors``."""
        parts = [(part + 1.0) * factor for part, factor in zip(self._parts, by, strict=True)]
        if max(parts) > HIGHEST:
            parts = [min(part, HIGHEST) for part in parts]
        self._parts = parts
        self.value = sum(parts) / len(SLOPES)
