"""The judge on one page: a worker has aged when a window of its last runs lies below the baseline, and a burst agrees.

One strange run convicts nobody; it asks for a burst, a few runs back to back, which only fill the same window sooner.
The window, one for each prompt size, convicts by counting sides: 7 of the last 8 runs under ``degraded.severe``, or 14
of the last 16 under the mild limit, which is ``degraded.below`` less what the baseline itself leaves open. On a well
worker whose runs scatter by 14 %, one in eight of them at half its rate, a run lies under the mild limit with a chance
below 0.3: 14 of 16 happen once in three million runs.

A burst adds at most four runs to a probe, so that no single bad moment of the host can convict.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import Any

from supervisor.core.baseline import Baseline
from supervisor.core.bursts import Bursts
from supervisor.core.judge import Cure
from supervisor.core.ranks import median_interval, sign_test
from supervisor.core.samples import NO_VERDICT, Purpose, Sample, Status, Verdict
from supervisor.core.terms import LaneTerms
from supervisor.core.window import RECENT, Window, hits

STRANGE = 1 / 1.5
"""A single run below this ratio asks for a burst."""

BURST_RUNS = RECENT - 1
"""With the run that asked for them they make up the recent ones."""

NOTICEABLE = 1.12
"""A new worker not faster than the old one by this factor has cured nothing."""

ERRORS_ALLOWED = 2.0
ERRORS_ALLOWED_PROVISIONAL = 3.0
"""How many standard errors of the baseline are given to the worker's advantage."""


_IN_DOUBT = (Status.DEGRADED, Status.SUSPECT)
_STANDING = (*_IN_DOUBT, Status.HEALTHY, Status.UNKNOWN)


class OnePageJudge:
    """See above. Implements ``judge.Judge``."""

    def __init__(self, terms: LaneTerms, baseline: Baseline) -> None:
        self.terms = terms
        self._baseline = baseline
        self._verdict = NO_VERDICT
        self._windows: dict[int, Window] = {}
        self._bursts = Bursts(terms.canary.burst_budget)
        self._convicted_size: int | None = None

    @classmethod
    def new(cls, terms: LaneTerms) -> OnePageJudge:
        """A judge that knows nothing yet."""
        return cls(terms, Baseline())

    # ---- what it knows ----

    @property
    def verdict(self) -> Verdict:
        """The last one."""
        return self._verdict

    @property
    def smallest(self) -> int:
        """The smallest prompt size."""
        return min(self.terms.canary.prompt_tokens)

    @property
    def fresh_tok_s(self) -> float | None:
        """Decode rate of a fresh worker at the smallest prompt size, tokens/s."""
        return self._baseline.fresh_tok_s(self.smallest)

    @property
    def is_baseline_full(self) -> bool:
        """Whether the baseline at the smallest size rests on enough runs of enough spawns."""
        return self._baseline.is_full(self.smallest)

    def baseline_summary(self) -> dict[str, Any]:
        """{decode_tok_s, by_prompt_tokens, spawns, runs, quality}."""
        return self._baseline.summary(self.smallest)

    # ---- taking runs in ----

    def worker_replaced(self, generation: int) -> None:
        """Judge another worker, by its own runs."""
        self._baseline.spawned()
        self._windows = {}
        self._bursts.stop()
        self._verdict = Verdict(Status.UNKNOWN, f"generation {generation} is not measured yet")

    def observe(self, sample: Sample) -> Verdict:
        """Take one run in; a void one changes nothing."""
        if not sample.is_clean or sample.decode_tok_s is None:
            return self._verdict
        has_burst_ended = self._bursts.took(sample, self.terms.canary.burst_budget)
        self._baseline.add(sample, self.terms.baseline)
        window = self._windows.setdefault(sample.prompt_tokens, Window())
        window.add(sample.decode_tok_s)
        if not self._bursts.left:
            may_suspect = has_burst_ended or not self._bursts.can_afford
            window.status = self._status(sample.prompt_tokens, window, may_suspect=may_suspect)
        if sample.purpose in (Purpose.ROUTINE, Purpose.ASKED):
            self._bursts.ask(sample.prompt_tokens, self._burst_wanted(sample, window))
        self._verdict = self._say(sample)
        return self._verdict

    def _status(self, size: int, window: Window, *, may_suspect: bool) -> Status:
        fresh = self._baseline.fresh_tok_s(size)
        if fresh is None:
            return Status.UNKNOWN
        limit = self._limit(size) * fresh
        if size != self.smallest and window.best_tok_s < limit:
            return Status.UNKNOWN  # never fast at this size: it has not aged, and a new worker is not verified at it
        if window.is_severe(self.terms.degraded.severe * fresh) or window.is_mild(limit):
            return Status.DEGRADED
        is_well = window.has_recent and window.recent_tok_s >= (fresh + limit) / 2
        if is_well or window.status is Status.UNKNOWN:
            return Status.HEALTHY
        is_slow = window.has_recent and window.recent_tok_s < limit
        return Status.SUSPECT if is_slow and may_suspect and window.status is Status.HEALTHY else window.status

    def _limit(self, size: int) -> float:
        """The ratio under which a run counts against the worker."""
        allowed = ERRORS_ALLOWED if self._baseline.is_full(size) else ERRORS_ALLOWED_PROVISIONAL
        return self.terms.degraded.below * math.exp(-allowed * 0.02)

    def _burst_wanted(self, sample: Sample, window: Window) -> int:
        size, fresh = sample.prompt_tokens, self._baseline.fresh_tok_s(sample.prompt_tokens)
        if self._is_fresh(sample) and self._baseline.lacks(size):
            return min(self._baseline.lacks(size), BURST_RUNS)
        is_settled = window.status is Status.DEGRADED or (window.status is Status.UNKNOWN and window.has_recent)
        if fresh is None or is_settled:
            return 0
        is_strange = window.is_strange(self._limit(size) * fresh, STRANGE * fresh)
        return BURST_RUNS if is_strange or window.status is Status.SUSPECT else 0

    def _is_fresh(self, sample: Sample) -> bool:
        terms = self.terms.baseline
        return sample.worker_age_s <= terms.fresh_for_s and sample.worker_requests < terms.fresh_requests

    # ---- saying what they tell ----

    def _say(self, sample: Sample) -> Verdict:
        size = self._worst_size(sample.prompt_tokens)
        status, fresh = self._windows[size].status, self._baseline.fresh_tok_s(size)
        by_size = {each: window.typical_tok_s for each, window in sorted(self._windows.items())}
        verdict = Verdict(
            status=status,
            reason=f"no baseline at {size} prompt tokens yet ({self._baseline.runs(size)} fresh runs)",
            at=sample.at,
            decode_tok_s=by_size.get(self.smallest),
            by_prompt_tokens=tuple(by_size.items()),
            wants_runs=self._bursts.left,
            wants_size=self._bursts.size if self._bursts.left else self._size_in_doubt(size, sample.prompt_tokens),
        )
        if status is Status.DEGRADED:
            self._convicted_size = size
        return verdict if fresh is None else self._with_evidence(verdict, size, fresh)

    def _with_evidence(self, verdict: Verdict, size: int, fresh: float) -> Verdict:
        window, limit = self._windows[size], self._limit(size)
        is_mild = verdict.status is Status.DEGRADED and not window.is_severe(self.terms.degraded.severe * fresh)
        evidence = window.evidence(is_mild=is_mild)
        middle, slow = median(evidence), hits(evidence, limit * fresh)
        low, high = median_interval(evidence)
        return replace(
            verdict,
            reason=(
                f"{middle:.1f} tok/s at {size} prompt tokens, {middle / fresh:.0%} of a fresh worker's {fresh:.1f}; "
                f"{slow} of {len(evidence)} runs below {limit:.0%}"
            ),
            ratio=middle / fresh,
            interval=(low / fresh, high / fresh),
            confidence=1.0 - sign_test(slow, len(evidence)),
            samples=evidence,
            baseline_tok_s=fresh,
        )

    def _worst_size(self, measured: int) -> int:
        """The size that the verdict is about: the one in worst standing, among well ones the one just measured."""

        def rank(size: int) -> tuple[int, bool, int]:
            status = self._windows[size].status
            return _STANDING.index(status), size != measured and status not in _IN_DOUBT, size

        return min(self._windows, key=rank)

    def _size_in_doubt(self, worst: int, measured: int) -> int | None:
        """What to run next: while a larger size is in doubt, the smallest in turn with it, for that one costs least.

        If it is slow too, it convicts, and its rates can be compared with those of the next worker.
        """
        if self._windows[worst].status not in _IN_DOUBT:
            return None
        return self.smallest if measured == worst else worst

    # ---- what a recycle brought ----

    def compare(self, before_rates: Sequence[float], after_rates: Sequence[float]) -> Cure:
        """``cured``, ``partial`` or ``futile``; the new worker's rates are of the smallest prompt size.

        An old worker that was convicted at another size is compared by what each was of the baseline at its size.
        """
        after, fresh = median(after_rates), self.fresh_tok_s
        if before_rates and after < NOTICEABLE * median(before_rates) * self._to_smallest():
            return "futile"
        if fresh is not None and after < self.terms.degraded.below * fresh:
            return "partial"
        return "cured"

    def _to_smallest(self) -> float:
        """What turns a rate at the size that was convicted into one at the smallest."""
        convicted = self._convicted_size if self._convicted_size is not None else self.smallest
        fresh_there, fresh = self._baseline.fresh_tok_s(convicted), self.fresh_tok_s
        return 1.0 if fresh_there is None or fresh is None else fresh / fresh_there

    # ---- outliving the daemon ----

    def reset(self) -> None:
        """Forget what fresh means; the worker is judged again once five fresh runs are in."""
        self._baseline = Baseline()
        self._windows = {}
        self._bursts.stop()
        self._verdict = Verdict(Status.UNKNOWN, "the baseline was reset")

    def to_json(self) -> dict[str, Any]:
        """The baseline: a life is judged by its own runs and does not outlive the daemon."""
        return self._baseline.to_json()

    def restore(self, document: Mapping[str, Any]) -> None:
        """Take up a baseline that ``to_json`` gave."""
        self._baseline = Baseline.from_json(document)
