"""Arms measured in turns, and what can be said about their ratio."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass, field
from math import comb
from typing import Any


@dataclass(frozen=True)
class Run:
    """One output: its tokens, the seconds from the first to the last of them, and how many came in that time."""

    tokens: tuple[int, ...]
    seconds: float
    timed_tokens: int
    notes: dict[str, Any] = field(default_factory=dict)

    @property
    def rate(self) -> float:
        return self.timed_tokens / self.seconds


Arm = Callable[[], Run]


def interleave(arm: Arm, reference: Arm, pairs: int) -> list[tuple[Run, Run]]:
    """Run both `pairs` times, next to each other, each as often first as second."""
    measured = []
    for number in range(pairs):
        if number % 2:
            other = reference()
            measured.append((arm(), other))
        else:
            measured.append((arm(), reference()))
    return measured


def summary(measured: list[tuple[Run, Run]], bar: float) -> dict[str, Any]:
    """The median of the paired ratios of rates with its interval, and whether the bar holds.

    A bar is missed only where the whole interval lies under it. Tokens must be the same in both arms.
    """
    ratios = sorted(run.rate / other.rate for run, other in measured)
    low, high = median_interval(ratios)
    median = statistics.median(ratios)
    return {
        "pairs": len(ratios),
        "ratio": round(median, 4),
        "interval": [round(low, 4), round(high, 4)],
        "bar": bar,
        "met": high >= bar,
        "met_by_the_median": median >= bar,
        "tok_s": round(statistics.median(run.rate for run, _ in measured), 2),
        "reference_tok_s": round(statistics.median(other.rate for _, other in measured), 2),
        "mismatches": sum(run.tokens != other.tokens for run, other in measured),
        "tokens_a_run": len(measured[0][0].tokens),
        **measured[-1][0].notes,
    }


def median_interval(values: list[float], confidence: float = 0.95) -> tuple[float, float]:
    """An interval for the median by order statistics: no assumption about the noise. All of it below 6 values."""
    ordered, n = sorted(values), len(values)
    outside, rank = 0.0, 0
    while rank < n // 2 and outside + 2 * comb(n, rank) / 2**n <= 1 - confidence:
        outside += 2 * comb(n, rank) / 2**n
        rank += 1
    cut = max(rank - 1, 0)
    return ordered[cut], ordered[n - 1 - cut]
