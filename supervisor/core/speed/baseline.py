"""What fresh means: the decode rates of workers that have only just begun, over several spawns.

Only runs of a worker's first minutes and first requests count, and only the first few of each spawn. So a worker that
ages cannot pull the baseline down with it, and a long life weighs no more than a short one. There are two references:
the pool of all spawns, and the worker's own first runs once there are enough; a worker is held to the better one. A
spawn that came up slow hardly counts in the pool: a worker is held to what this machine has been seen to do. Where
the machine brings nothing better, the slow spawn is accepted, and held to its own first runs alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any, NamedTuple

from supervisor.core.samples import Sample
from supervisor.core.speed.fresh_runs import (
    OWN_RUNS,
    RUNS_PER_SPAWN,
    RUNS_THAT_TELL,
    SPAWNS_KEPT,
    centre,
    drop_oldest,
    good_spawn,
    rates_in,
)
from supervisor.core.speed.mixture import HARMLESS
from supervisor.core.speed.ranks import spread
from supervisor.core.terms import BaselineTerms

RUNS_PER_LATER_SPAWN = 2
"""What each spawn adds after that, so that the pool keeps up with the machine."""

RUNS_WHEN_FULL = 16
SPAWNS_WHEN_FULL = 3

SLOW_SPAWN = 0.85
"""A spawn below this share of a good one is left out: a spawn is at times slow by bad luck, never fast by good luck."""

ERRORS_GIVEN = 2.5
"""Standard errors of a reference; it is nearly never further off."""


class Reference(NamedTuple):
    """What one run is held against."""

    log_rate: float
    error: float
    """What it leaves open beyond what the detector takes for harmless; given to the worker's advantage."""
    sd: float
    """Standard deviation of a single run's log rate."""
    is_trusted: bool
    """Whether it rests on enough runs to tell a mild slowdown."""

    @property
    def tok_s(self) -> float:
        """As tokens/s."""
        return math.exp(self.log_rate)


class Baseline:
    """Fresh decode rates of one lane, by prompt size and spawn."""

    def __init__(self) -> None:
        self._spawns: dict[int, list[list[float]]] = {}
        self._is_new_spawn: dict[int, bool] = {}
        self._own: dict[int, list[float]] = {}
        """The first runs of the worker measured now."""
        self.inflation = 1.0
        """The lane's long-run variance over that of one run; see ``LaneNoise``."""
        self._accepted_at: float | None = None
        """Of a worker that is slow but the best to be had: how far below the pool, as the logarithm of a ratio."""
        self._known: dict[int, Reference | None] = {}
        self._known_pool: dict[int, float | None] = {}
        self._known_counted: dict[int, list[float]] = {}
        self._known_sd: float | None = None
        """All four: what was worked out since the last run came in."""

    # ---- taking runs in ----

    def spawned(self) -> None:
        """The runs that follow are another worker's."""
        self._is_new_spawn = dict.fromkeys(self._spawns, True)
        self._own = {}
        self._accepted_at = None
        self._known = {}
        self._known_pool = {}

    def add(self, sample: Sample, terms: BaselineTerms) -> bool:
        """Take in a clean run if its worker is still fresh; whether it counts in the pool."""
        rate, size = sample.decode_tok_s, sample.prompt_tokens
        is_fresh = sample.worker_age_s <= terms.fresh_for_s and sample.worker_requests < terms.fresh_requests
        if rate is None or not sample.is_clean or not is_fresh:
            return False
        own = self._own.setdefault(size, [])
        if len(own) < RUNS_PER_SPAWN:
            own.append(rate)
            self._known.pop(size, None)
        spawns = self._spawns.setdefault(size, [])
        if not spawns or self._is_new_spawn.get(size, False):
            spawns.append([])
            drop_oldest(spawns)
            self._known_counted.pop(size, None)
        self._is_new_spawn[size] = False
        if len(spawns[-1]) >= self._runs_that_count(size):
            return False
        spawns[-1].append(rate)
        self._known, self._known_sd = {}, None
        self._known_pool.pop(size, None)
        self._known_counted.pop(size, None)
        return True

    def _runs_that_count(self, size: int) -> int:
        """Of the newest spawn: few, once the pool is full, unless it seems to have come up in another mode."""
        newest, pool = self._spawns[size][-1], self._pool(size)
        if self.spawns(size) <= SPAWNS_WHEN_FULL or not self.is_full(size) or pool is None:
            return RUNS_PER_SPAWN
        is_odd = len(newest) >= RUNS_PER_LATER_SPAWN and abs(math.log(median(newest)) - pool) > -math.log(SLOW_SPAWN)
        return RUNS_PER_SPAWN if is_odd else RUNS_PER_LATER_SPAWN

    def lacks(self, size: int) -> int:
        """How many more runs the worker measured now could add at this size."""
        spawns = self._spawns.get(size, [])
        own = 0 if not spawns or self._is_new_spawn.get(size, False) else len(spawns[-1])
        return max((RUNS_PER_LATER_SPAWN if self.is_full(size) else RUNS_PER_SPAWN) - own, 0)

    def anchor_anew(self, smallest: int, rates: Sequence[float]) -> float | None:
        """The machine has changed: what fresh means is moved, at all sizes, to what ``rates`` are at the smallest.

        Returns the new rate over the old one; None where there are too few to tell.
        """
        pool = self._pool(smallest)
        if len(rates) < RUNS_THAT_TELL or pool is None:
            return None
        moved = math.exp(centre(rates) - pool)
        self._own = {}
        self._spawns = {
            size: [[rate * moved for rate in spawn] for spawn in spawns] for size, spawns in self._spawns.items()
        }
        self._known, self._known_pool, self._known_counted = {}, {}, {}
        return moved

    # ---- what they say ----

    def reference(self, size: int) -> Reference | None:
        """What a run at this size is held against; None while fewer than five runs are in."""
        if size not in self._known:
            self._known[size] = self._work_out(size)
        return self._known[size]

    def _work_out(self, size: int) -> Reference | None:
        pool, own = self._pool(size), self._own.get(size, [])
        sd = self._sd()
        has_own = len(own) >= OWN_RUNS
        if self._accepted_at is not None and len(own) >= RUNS_THAT_TELL:
            return Reference(centre(own), self._error(sd, len(own), 1), sd, is_trusted=has_own)
        if pool is None:
            return None
        pool += self._accepted_at or 0.0
        is_trusted = has_own or self.is_full(size)
        counted = self._counted(size)
        references = [Reference(pool, self._error(sd, len(counted), self.spawns(size)), sd, is_trusted)]
        if has_own:
            references.append(Reference(centre(own), self._error(sd, len(own), 1), sd, is_trusted))
        return max(references, key=lambda each: each.log_rate - each.error)

    def _error(self, sd: float, runs: int, spawns: int) -> float:
        """Runs of one spawn lie close together in time, and share what the host did meanwhile."""
        error = sd * math.sqrt(1 / runs + (self.inflation - 1) / spawns)
        return max(ERRORS_GIVEN * error - HARMLESS, 0.0)

    def fresh_tok_s(self, size: int) -> float | None:
        """Decode rate of a fresh worker, tokens/s, by the pool; None while fewer than five runs are in."""
        pool = self._pool(size)
        return None if pool is None else math.exp(pool)

    def _pool(self, size: int) -> float | None:
        if size not in self._known_pool:
            counted = self._counted(size)
            self._known_pool[size] = centre(counted) if len(counted) >= RUNS_THAT_TELL else None
        return self._known_pool[size]

    def _sd(self) -> float:
        """Of a single run, from how far runs lie from the centre of their own spawn and size. It is one for all sizes:
        more runs know it better, and what single runs scatter by is the machine's.
        """
        if self._known_sd is None:
            spawns = [spawn for spawns in self._spawns.values() for spawn in spawns if len(spawn) >= RUNS_THAT_TELL]
            self._known_sd = spread([math.log(rate) - centre(spawn) for spawn in spawns for rate in spawn])
        return self._known_sd

    def is_slow_spawn(self, size: int) -> bool:
        """Whether the worker measured now came up slow, by its first runs and a full pool."""
        return len(self._own.get(size, [])) >= RUNS_THAT_TELL and self.may_be_slow_spawn(size)

    def may_be_slow_spawn(self, size: int) -> bool:
        """The same of however few runs it has."""
        own, pool = self._own.get(size, []), self._pool(size)
        if pool is None or not own or not self.is_full(size):
            return False
        return centre(own) < pool + math.log(SLOW_SPAWN)

    def accept(self, smallest: int) -> None:
        """The worker measured now came up slow, and so did others: it is held to its own first runs from now on, and
        at sizes where it has none, to the pool lowered by as much as it is slow at the smallest.
        """
        own, pool = self._own.get(smallest, []), self._pool(smallest)
        self._accepted_at = min(centre(own) - pool, 0.0) if own and pool is not None else 0.0
        self._known = {}

    def _counted(self, size: int) -> list[float]:
        """All runs but those of slow spawns. A spawn of few runs cannot be told from unlucky runs, and counts."""
        if size not in self._known_counted:
            spawns = self._spawns.get(size, [])
            limit = good_spawn(spawns) + math.log(SLOW_SPAWN)
            self._known_counted[size] = [
                rate for spawn in spawns if len(spawn) < RUNS_THAT_TELL or centre(spawn) >= limit for rate in spawn
            ]
        return self._known_counted[size]

    def modes(self, size: int) -> tuple[float, ...]:
        """Rates (tokens/s) at which spawns have come up, fastest first: one, or where some came up slow, two."""
        told = [spawn for spawn in self._spawns.get(size, []) if len(spawn) >= RUNS_THAT_TELL]
        limit = good_spawn(told) + math.log(SLOW_SPAWN)
        groups = (
            [rate for spawn in told for rate in spawn if (centre(spawn) >= limit) is is_fast]
            for is_fast in (True, False)
        )
        return tuple(math.exp(centre(group)) for group in groups if group)

    def spawn_rates(self, size: int) -> tuple[float, ...]:
        """Centre of each worker's fresh runs, tokens/s, oldest first."""
        return tuple(math.exp(centre(spawn)) for spawn in self._spawns.get(size, []))

    def runs(self, size: int) -> int:
        """Runs that count at this size."""
        return sum(map(len, self._spawns.get(size, [])))

    def spawns(self, size: int) -> int:
        """Workers they came from."""
        return len(self._spawns.get(size, []))

    @property
    def sizes(self) -> list[int]:
        """Prompt sizes at which anything was measured."""
        return sorted(self._spawns)

    def is_full(self, size: int) -> bool:
        """Whether enough runs of enough spawns are in."""
        return self.spawns(size) >= SPAWNS_WHEN_FULL and self.runs(size) >= RUNS_WHEN_FULL

    def summary(self, smallest: int) -> dict[str, Any]:
        """For people: rates in tokens/s, and what they rest on (all but ``by_prompt_tokens`` at the smallest size)."""
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
            "modes": list(self.modes(smallest)),
            "spawn_tok_s": list(self.spawn_rates(smallest)),
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
                readable = [rates for spawn in spawns if (rates := rates_in(spawn))] if isinstance(spawns, list) else []
                if readable and str(size).isdecimal():
                    baseline._spawns[int(size)] = readable[-SPAWNS_KEPT:]
        baseline.spawned()
        return baseline
