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

RUNS_PER_SPAWN = 12
"""Runs of one worker that count, per prompt size."""

SPAWNS_KEPT = 64
RUNS_THAT_TELL = 5
"""Fewer say nothing, neither of a spawn nor of the lane."""
RUNS_WHEN_FULL = 16
SPAWNS_WHEN_FULL = 3

FAST_SHARE = 0.75
"""A good spawn is one that, of all runs, three in four belong to spawns no faster than it."""

SLOW_SPAWN = 0.85
"""A spawn below this share of a good one is left out: a spawn is at times slow by bad luck, never fast by good luck."""

MEDIAN_OVER_MEAN = 1.2533
"""How much wider a median scatters than a mean."""


class Baseline:
    """Fresh decode rates of one lane, by prompt size and spawn."""

    def __init__(self) -> None:
        self._spawns: dict[int, list[list[float]]] = {}
        self._is_new_spawn: dict[int, bool] = {}
        self._known: dict[int, tuple[float | None, float]] = {}
        """What was worked out since the last run came in."""

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
        self._known.pop(size, None)
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
        return self._know(size)[0]

    def log_error(self, size: int) -> float:
        """Standard error of the logarithm of ``fresh_tok_s``."""
        return self._know(size)[1]

    def _know(self, size: int) -> tuple[float | None, float]:
        if size not in self._known:
            counted = self._counted(size)
            error = MEDIAN_OVER_MEAN * spread([math.log(rate) for rate in counted]) / math.sqrt(max(len(counted), 1))
            self._known[size] = (median(counted) if len(counted) >= RUNS_THAT_TELL else None, error)
        return self._known[size]

    def _counted(self, size: int) -> list[float]:
        """All runs but those of slow spawns. A spawn of few runs cannot be told from unlucky runs, and counts."""
        spawns = self._spawns.get(size, [])
        told = sorted((median(spawn), len(spawn)) for spawn in spawns if len(spawn) >= RUNS_THAT_TELL)
        due, seen, good = FAST_SHARE * sum(runs for _, runs in told), 0, 0.0
        for middle, runs in told:
            if seen < due:
                good = middle
            seen += runs
        limit = SLOW_SPAWN * good
        return [rate for spawn in spawns if len(spawn) < RUNS_THAT_TELL or median(spawn) >= limit for rate in spawn]

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
        """All of it, as JSON values; a copy, so that it can be compared with a later one."""
        return {"spawns": {str(size): [list(spawn) for spawn in spawns] for size, spawns in self._spawns.items()}}

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
