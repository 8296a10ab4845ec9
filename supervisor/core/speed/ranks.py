"""Statistics that ask only for the order of numbers: what a rate twice too low, or a clumsy noise model, cannot bend.

Everything here works on logarithms of rates, so that a ratio is a difference and "3.2 times slower" is as far from "the
same" as "3.2 times faster". Empty input is the caller's mistake and raises ValueError.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations_with_replacement, product
from statistics import median

MAD_TO_SD = 1.4826
"""A normal distribution's standard deviation over its median absolute deviation."""

PRIOR_SD = 0.14
PRIOR_WEIGHT = 12
SMALLEST_SD = 0.08
"""What single runs scatter by until a lane has shown its own scatter, how many runs that belief is worth, and the least
ever believed.
"""

MANY = 20
"""Values whose pairwise means are too many to sort them all."""


def hodges_lehmann(values: Sequence[float]) -> float:
    """The median of all pairwise means: nearly as sharp as the mean, and unmoved by one outlier in four."""
    return median(_walsh_averages(values)) if len(values) < MANY else _of_many(sorted(values))


def _of_many(ordered: Sequence[float]) -> float:
    """The same, sorting only those of the pairwise means that lie near the middle."""
    runs = len(ordered)
    pairs = runs * (runs + 1) // 2
    first, last = (pairs - 1) // 2, pairs // 2
    middle = ordered[runs // 2]
    width = (ordered[3 * runs // 4] - ordered[runs // 4]) / math.sqrt(runs)
    while width > 0:
        starts = _places(ordered, 2 * (middle - width))
        ends = _places(ordered, 2 * (middle + width))
        below = sum(starts) - runs * (runs - 1) // 2
        near = sorted(
            [
                (one + other) / 2
                for one, start, end in zip(ordered, starts, ends, strict=True)
                for other in ordered[start:end]
            ]
        )
        if below <= first and last < below + len(near):
            return (near[first - below] + near[last - below]) / 2
        width *= 4
    return median(_walsh_averages(ordered))


def _places(ordered: Sequence[float], total: float) -> list[int]:
    """For each value, the place of the first later one (or itself) with which it adds up to more than ``total``."""
    return [bisect_right(ordered, total - value, index) for index, value in enumerate(ordered)]


def hodges_lehmann_interval(values: Sequence[float], coverage: float = 0.95) -> tuple[float, float]:
    """Exact signed-rank interval of the centre of symmetry; with too few values for ``coverage``, their full range."""
    averages = sorted(_walsh_averages(values))
    cut = _signed_rank_quantile(len(values), (1 - coverage) / 2)
    return averages[cut], averages[-1 - cut]


def shift_interval(before: Sequence[float], after: Sequence[float], coverage: float = 0.95) -> tuple[float, float]:
    """Rank-sum interval of how far ``after`` lies above ``before`` (normal approximation of the cut)."""
    differences = sorted(late - early for late, early in product(after, before))
    pairs = len(differences)
    sd = math.sqrt(pairs * (len(before) + len(after) + 1) / 12)
    cut = max(math.floor(pairs / 2 - _normal_quantile(coverage) * sd), 0)
    cut = min(cut, (pairs - 1) // 2)
    return differences[cut], differences[-1 - cut]


def shift(before: Sequence[float], after: Sequence[float]) -> float:
    """How far ``after`` lies above ``before``: the median of all differences."""
    return median(late - early for late, early in product(after, before))


def median_interval(values: Sequence[float], coverage: float = 0.95) -> tuple[float, float]:
    """Exact order-statistic interval of the median; with too few values for ``coverage``, their full range."""
    ordered = sorted(values)
    runs, cut, tail = len(ordered), 0, 1 / 2 ** len(ordered)
    while cut + 1 < (runs + 1) // 2 and tail + math.comb(runs, cut + 1) / 2**runs <= (1 - coverage) / 2:
        cut += 1
        tail += math.comb(runs, cut) / 2**runs
    return ordered[cut], ordered[-1 - cut]


def spread(values: Sequence[float]) -> float:
    """Standard deviation of one run, shrunk towards what is usual, so that five lucky runs do not make a lane exact."""
    degrees = max(len(values) - 1, 0)
    mad_sd = 0.0
    if degrees:
        centre = median(values)
        mad_sd = MAD_TO_SD * median(abs(value - centre) for value in values)
    variance = (PRIOR_WEIGHT * PRIOR_SD**2 + degrees * mad_sd**2) / (PRIOR_WEIGHT + degrees)
    return max(math.sqrt(variance), SMALLEST_SD)


def _walsh_averages(values: Sequence[float]) -> list[float]:
    return [(one + other) / 2 for one, other in combinations_with_replacement(values, 2)]


@lru_cache(maxsize=256)
def _signed_rank_quantile(runs: int, tail: float) -> int:
    """The largest cut that leaves at most ``tail`` of the exact signed-rank distribution below it."""
    ways = [1]
    for rank in range(1, runs + 1):
        ways = [
            (ways[total] if total < len(ways) else 0) + (ways[total - rank] if 0 <= total - rank < len(ways) else 0)
            for total in range(len(ways) + rank)
        ]
    allowed, below, cut = tail * 2**runs, 0, 0
    while below + ways[cut] <= allowed:
        below += ways[cut]
        cut += 1
    return max(cut - 1, 0) if cut else 0


def _normal_quantile(coverage: float) -> float:
    """The half-width, in standard deviations, that covers ``coverage`` (bisection on erf; only a handful of calls)."""
    low, high = 0.0, 10.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if math.erf(middle / math.sqrt(2)) < coverage else (low, middle)
    return low
