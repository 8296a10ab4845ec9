"""What fresh means: the decode rates of workers that have only just begun, over several spawns.

Only runs of a worker's first minutes and first requests count, and only the first few of each spawn. So a worker that
ages cannot pull the baseline down with it, and a long life weighs no more than a short one. A spawn that came up slow
hardly counts against faster ones: a worker is held to what this machine has been seen to do.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from statistics import median
from typing import Any

from supervisor.core.ranks import spread
from supervisor.core.samples import Sample
from supervisor.core.terms import BaselineTerms

RUNS_PER_SPAWN = 8
"""Runs of one worker that count, per prompt size."""

SPAWNS_KEPT = 24
RUNS_THAT_TELL = 5
RUNS_WHEN_FULL = 16
SPAWNS_WHEN_FULL = 3

FAST_SHARE = 0.75
"""The baseline lies where this share of runs belongs to spawns that are no faster: above the middle, because a spawn
is at times slow by bad luck and never fast by good luck.
"""

MEDIAN_OVER_MEAN = 1.2533
"""How much wider a median scatters than a mean."""


class Baseline:
    """Fresh decode rates of one lane, by prompt size and spawn."""

    def __init__(self) -> None:
        self._spawns: dict[int, list[list[float]]] = {}
        self._is_new_spawn: dict[int, bool] = {}

    # ---- taking runs in ----

    def spawned(self) -> None:
        """The runs that follow are another worker's."""
        self._is_new_spawn = dict.fromkeys(self._spawns, True)

    def add(self, sample: Sample, terms: BaselineTerms) -> bool:
        """Take in a clean run if its worker is still fresh; whether it was."""
        rate, size = sample.decode_tok_s, sample.prompt_tokens
        is_fresh = sample.worker_age_s <= terms.fresh_for_s and sample.worker_requests < terms.fresh_requests
        if rate is None or not sample.is_clean or not is_fresh:
            return False
        spawns = self._spawns.setdefault(size, [])
        if not spawns or self._is_new_spawn.get(size, False):
            spawns.append([])
            del spawns[:-SPAWNS_KEPT]
        self._is_new_spawn[size] = False
        if len(spawns[-1]) >= RUNS_PER_SPAWN:
            return False
        spawns[-1].append(rate)
        return True

    def lacks(self, size: int) -> int:
        """How many more runs the worker measured now could add at this size."""
        if self.is_full(size):
            return 0
        spawns = self._spawns.get(size, [])
        own = 0 if not spawns or self._is_new_spawn.get(size, False) else len(spawns[-1])
        return RUNS_PER_SPAWN - own

    # ---- what they say ----

    def fresh_tok_s(self, size: int) -> float | None:
        """Decode rate of a fresh worker, tokens/s; None while fewer than five runs are in."""
        spawns = self._spawns.get(size, [])
        if self.runs(size) < RUNS_THAT_TELL:
            return None
        due, seen = FAST_SHARE * self.runs(size), 0
        ordered = sorted((median(spawn), len(spawn)) for spawn in spawns)
        for middle, runs in ordered:
            seen += runs
            if seen >= due - 1e-9:
                return middle
        return ordered[-1][0]

    def log_error(self, size: int) -> float:
        """Standard error of the logarithm of ``fresh_tok_s``: how far runs of the same worker leave it open."""
        spawns = self._spawns.get(size, [])
        residuals = [math.log(rate / median(spawn)) for spawn in spawns for rate in spawn]
        return MEDIAN_OVER_MEAN * spread(residuals) / math.sqrt(max(len(residuals), 1))

    def runs(self, size: int) -> int:
        """Runs that count at this size."""
        return sum(len(spawn) for spawn in self._spawns.get(size, []))

    def spawns(self, size: int) -> int:
        """Workers they came from."""
        return len(self._spawns.get(size, []))

    def is_full(self, size: int) -> bool:
        """Whether enough runs of enough spawns are in."""
        return self.runs(size) >= RUNS_WHEN_FULL and self.spawns(size) >= SPAWNS_WHEN_FULL

    def summary(self, smallest: int) -> dict[str, Any]:
        """For people: rates in tokens/s, and what they rest on (counts at the smallest size)."""
        fresh = self.fresh_tok_s(smallest)
        quality = "none" if fresh is None else "full" if self.is_full(smallest) else "provisional"
        return {
            "decode_tok_s": fresh,
            "by_prompt_tokens": {
                str(size): rate for size in sorted(self._spawns) if (rate := self.fresh_tok_s(size)) is not None
            },
            "spawns": self.spawns(smallest),
            "runs": self.runs(smallest),
            "quality": quality,
        }

    # ---- outliving the daemon ----

    def to_json(self) -> dict[str, Any]:
        """All of it, as JSON values."""
        return {"spawns": {str(size): spawns for size, spawns in self._spawns.items()}}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Baseline:
        """What ``to_json`` gave; anything that cannot be read is left out."""
        baseline = cls()
        sizes = document.get("spawns")
        if isinstance(sizes, Mapping):
            for size, spawns in sizes.items():
                readable = [rates for spawn in spawns if (rates := _rates(spawn))] if isinstance(spawns, list) else []
                if readable and str(size).isdecimal():
                    baseline._spawns[int(size)] = readable[-SPAWNS_KEPT:]
        baseline.spawned()
        return baseline


def _rates(values: object) -> list[float]:
    if not isinstance(values, list):
        return []
    return [
        float(value)
        for value in values
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value > 0
    ][:RUNS_PER_SPAWN]
