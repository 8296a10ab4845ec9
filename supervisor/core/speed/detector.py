"""Whether one worker has slowed down: R over its runs, bursts when it is in doubt, two rules, and a last look.

A visit begins with one run. If it is strange, or R has grown, three more follow at once, and their median counts as one
observation; if they find the worker slow, five more follow a little later, for what is wrong with the host this minute
may be gone by then. The mild rule convicts when R reaches ``once_in`` and a burst of a later visit, the last look,
still finds the worker slow. The severe rule needs no R: the median of the last eight runs far below fresh, in two
probes in a row. One run, however slow, and one burst never convict.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import NamedTuple

from supervisor.core.samples import Status
from supervisor.core.speed.burst_budget import BurstBudget
from supervisor.core.speed.lane_noise import LaneNoise
from supervisor.core.speed.mixture import SLOW_MEDIANS, SLOW_RUNS, Mixture, factors, offsets
from supervisor.core.terms import DegradedTerms

SUSPICIOUS = 5.0
"""R that asks for a burst."""

STRANGE = math.log(1.5)
"""A single run this much slower asks for a burst; and until the lane's noise is measured, the mild rule wants it."""

FIRST_BURST, SECOND_BURST = 3, 5
SEVERE_RUNS = 8
REMEMBERED = 16
RUNS_OF_ANOTHER_PROBE = 4
RECOVERED_RUNS = 5
RECOVERED = -math.log(0.95)
"""After a conviction, so many runs whose median is not slower than this lift it."""

POOLED_SHARE = 0.5
"""How much of R is that of all sizes together; the rest is shared by each size's own."""


class Run(NamedTuple):
    """One clean run, as the detector sees it."""

    size: int
    slowness: float
    """ln(fresh rate) - ln(rate)."""
    sd: float
    """Standard deviation of a single run's log rate."""
    at: float
    is_burst: bool = False
    is_routine: bool = True
    took_s: float = 0.0


@dataclass
class _Burst:
    size: int
    wanted: int
    is_second: bool
    is_last_look: bool
    found: list[float] = field(default_factory=list)


class Detector:
    """The detector of one worker's life. ``once_in``: observations between two false alarms, at least."""

    def __init__(self, sizes: Sequence[int], noise: LaneNoise, budget: BurstBudget) -> None:
        self.noise = noise
        self.budget = budget
        self.is_convicted = False
        self.is_pending = False
        self.is_severe = False
        """Whether the severe rule convicted."""
        self.size_in_doubt: int | None = None
        self.evidence = 0.0
        """R."""
        self._all = Mixture()
        self._each: dict[int, Mixture] = {size: Mixture() for size in sizes} if len(sizes) > 1 else {}
        self._recent: dict[int, deque[float]] = {}
        self._burst: _Burst | None = None
        self._is_second_due = False
        self._status = Status.HEALTHY
        self._probe = 0
        self._runs: dict[int, int] = {}
        self._severe_since: tuple[int, int, int] | None = None
        """Size, its runs, and the probe in which it was first found far too slow, if it has been ever since."""
        self._convicted_after = 0
        """Runs at the size that was convicted, when it was."""

    # ---- what it says ----

    @property
    def status(self) -> Status:
        """Healthy, suspect or degraded; while a burst is under way, what it was before."""
        return self._status

    @property
    def wants_runs(self) -> int:
        """Runs of the burst under way that are still to come."""
        return 0 if self._burst is None else self._burst.wanted - len(self._burst.found)

    @property
    def is_second_due(self) -> bool:
        """Whether a burst is wanted a little later."""
        return self._is_second_due

    @property
    def wants_size(self) -> int | None:
        """The prompt size that the next runs should have."""
        if self._burst is not None or self._is_second_due or self._status is Status.SUSPECT:
            return self.size_in_doubt
        return None

    def recent(self, size: int, runs: int) -> tuple[float, ...]:
        """Slowness of the last runs at this size, oldest first."""
        return tuple(self._recent.get(size, ()))[-runs:]

    # ---- taking runs in ----

    def observe(self, run: Run, terms: DegradedTerms, once_in: float, *, may_be_mild: bool) -> None:
        """Take one clean run in. ``may_be_mild``: whether the baseline is good enough for the mild rule."""
        self._recent.setdefault(run.size, deque(maxlen=REMEMBERED)).append(run.slowness)
        self._runs[run.size] = self._runs.get(run.size, 0) + 1
        burst, slow = self._burst, -math.log(terms.below)
        if run.is_burst:
            self.budget.spent(run.took_s)
        if burst is not None and run.is_burst and run.size == burst.size:
            burst.found.append(run.slowness)
        else:
            self._burst = None
            self._begin_visit(run)
        if self._burst is not None and self.wants_runs == 0:
            self._end_burst(run, self._burst, slow)
        is_free = not (self.is_pending or self.is_convicted)
        if is_free and may_be_mild and self.evidence >= once_in:
            self.is_pending = True
            self.size_in_doubt = self._doubted(run.size)
        if self.is_pending and self._burst is None:
            self._is_second_due = True
        self._conclude(run, -math.log(terms.severe))

    def _begin_visit(self, run: Run) -> None:
        may_burst = self.budget.can_afford(run.at) or self.is_pending
        if self._is_second_due and run.size == self.size_in_doubt and may_burst:
            self._is_second_due = False
            self._ask(run.size, SECOND_BURST, is_second=True)
            assert self._burst is not None  # noqa: S101 - asked for in the line above
            self._burst.found.append(run.slowness)
            return
        self._probe += 1
        if run.is_routine and not self.is_convicted and not self.is_pending:
            self.noise.add(run.slowness, run.sd)
        self._feed(run.size, run.slowness, 1, run.sd)
        is_doubted = self.evidence >= SUSPICIOUS and run.size == self._doubted(run.size)
        is_free = run.is_routine and may_burst and not (self.is_convicted or self.is_pending or self._is_second_due)
        if is_free and (run.slowness > STRANGE or is_doubted):
            self._ask(run.size, FIRST_BURST, is_second=False)

    def _doubted(self, size: int) -> int:
        """The size whose own runs say more than all sizes' together; else the one at hand."""
        worst = max(self._each, key=lambda each: self._each[each].value, default=size)
        return worst if self._each and self._each[worst].value > self._all.value else size

    def _ask(self, size: int, runs: int, *, is_second: bool) -> None:
        self._burst = _Burst(size, runs, is_second, is_last_look=is_second and self.is_pending)
        self.size_in_doubt = size
        self.budget.begun()

    def _feed(self, size: int, slowness: float, runs: int, sd: float) -> None:
        sd_of = self.noise.sd_of(runs, sd)
        by = factors(slowness / sd_of, offsets(sd_of, SLOW_RUNS if runs == 1 else SLOW_MEDIANS))
        self._all.feed(by)
        self.evidence = self._all.value
        if size in self._each:
            self._each[size].feed(by)
            own = sum([mixture.value for mixture in self._each.values()]) / len(self._each)
            self.evidence = POOLED_SHARE * self._all.value + (1 - POOLED_SHARE) * own

    def _end_burst(self, run: Run, burst: _Burst, slow: float) -> None:
        middle = median(burst.found)
        self._feed(run.size, middle, burst.wanted, run.sd)
        self._burst = None
        self._is_second_due = not burst.is_second and (middle > slow or self.evidence >= SUSPICIOUS)
        self.size_in_doubt = run.size if middle > slow else self._doubted(run.size)
        if burst.is_last_look:
            self.is_pending = False
            if middle > (slow if self.noise.is_measured else STRANGE):
                self._convict(run.size)
            else:
                self._forget()

    def _convict(self, size: int, *, is_severe: bool = False) -> None:
        self.is_convicted, self.is_severe = True, is_severe
        self.size_in_doubt, self._convicted_after = size, self._runs[size]

    def _forget(self) -> None:
        self._all, self.evidence = Mixture(), 0.0
        self._each = {size: Mixture() for size in self._each}
        self._is_second_due = self.is_convicted = self.is_pending = self.is_severe = False

    def _conclude(self, run: Run, severe: float) -> None:
        if self._burst is not None:
            return
        if not self.is_convicted and self._is_far_too_slow(run.size, severe):
            self._convict(run.size, is_severe=True)
        if self.is_convicted:
            self._is_second_due = self.is_pending = False
            self._look_for_recovery(run)
        is_in_doubt = self._is_second_due or self.evidence >= SUSPICIOUS
        self._set(Status.DEGRADED if self.is_convicted else Status.SUSPECT if is_in_doubt else Status.HEALTHY)

    def _is_far_too_slow(self, size: int, severe: float) -> bool:
        """Whether the last eight runs are, and have been in the probe before, and most of those since then too."""
        lately, first = self.recent(size, SEVERE_RUNS), self._severe_since
        if len(lately) < SEVERE_RUNS or median(lately) <= severe:
            self._severe_since = None if first and first[0] == size else first
            return False
        if first is None or first[0] != size:
            self._severe_since = (size, self._runs[size], self._probe)
            return False
        runs_since = min(self._runs[size] - first[1], SEVERE_RUNS)
        is_another = self._probe > first[2] and runs_since >= RUNS_OF_ANOTHER_PROBE
        return is_another and median(lately[-runs_since:]) > severe

    def _look_for_recovery(self, run: Run) -> None:
        runs_since = self._runs[run.size] - self._convicted_after
        if run.size != self.size_in_doubt or runs_since < RECOVERED_RUNS:
            return
        if median(self.recent(run.size, RECOVERED_RUNS)) < RECOVERED:
            self._forget()

    def _set(self, status: Status) -> None:
        if status is Status.DEGRADED and self._status is not status:
            self.budget.pay_back()
        elif status is Status.HEALTHY:
            self.budget.cleared()
        self._status = status
