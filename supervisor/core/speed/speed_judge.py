"""The judge of a lane's speed: what fresh means, whether the worker has slowed down, and the evidence in numbers.

``Baseline`` says what a run is held against, ``Detector`` what the runs of this life add up to; here they are put
together for one lane, and their findings into words. What was learned of the lane (baseline, noise) outlives the
worker and the daemon; R starts at 0 with each worker.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import Any

from supervisor.core.samples import NO_VERDICT, Purpose, Sample, Status, Verdict, Void
from supervisor.core.speed.baseline import Baseline, Reference
from supervisor.core.speed.burst_budget import BurstBudget
from supervisor.core.speed.detector import REMEMBERED, SEVERE_RUNS, Detector, Run
from supervisor.core.speed.judge import Cure
from supervisor.core.speed.lane_noise import LaneNoise
from supervisor.core.speed.ranks import hodges_lehmann, hodges_lehmann_interval
from supervisor.core.speed.step_yield import StepYield
from supervisor.core.terms import CanaryTerms, LaneTerms
from supervisor.core.words import plural, share

FILLING_RUNS = 4
"""Extra runs in a row of a fresh worker, while its lane's baseline is not full."""

NOTICEABLE = 1.12
"""A new worker not faster than the old one by this factor has cured nothing."""

YEAR_S = 365 * 86400.0
BURST_ALLOWANCE = 1.3
"""Observations to a probe: bursts count too."""


def observations_a_year(canary: CanaryTerms) -> float:
    """R may be this high by chance about once a year."""
    return BURST_ALLOWANCE * YEAR_S / canary.every_s


class SpeedJudge:
    """See above. ``is_filled``: whether a fresh worker is asked for the runs that its baseline lacks."""

    def __init__(self, terms: LaneTerms, baseline: Baseline, noise: LaneNoise, *, is_filled: bool = True) -> None:
        self.terms = terms
        self._is_filled = is_filled
        self._baseline = baseline
        self.noise = noise
        self._budget = BurstBudget(terms.canary.burst_budget, terms.canary.every_s)
        self._verdict = NO_VERDICT
        self._begin_life()

    @classmethod
    def new(cls, terms: LaneTerms, *, is_filled: bool = True) -> SpeedJudge:
        """A judge that knows nothing yet."""
        return cls(terms, Baseline(), LaneNoise(), is_filled=is_filled)

    def _begin_life(self) -> None:
        self._detector = Detector(self.terms.canary.prompt_tokens, self.noise, self._budget)
        self._rates: dict[int, deque[float]] = {}
        self._steps, self._plain = StepYield(), StepYield()
        self._filling = 0
        self._lacking: int | None = None
        self.noise.new_life()

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

    def reference(self, size: int) -> Reference | None:
        """What a run at this size is held against."""
        return self._baseline.reference(size)

    @property
    def is_baseline_full(self) -> bool:
        """Whether the baseline at the smallest size rests on enough runs of enough spawns."""
        return self._baseline.is_full(self.smallest)

    @property
    def may_be_slow_spawn(self) -> bool:
        """Whether the worker's first runs look as if it came up slow."""
        return self._baseline.may_be_slow_spawn(self.smallest)

    @property
    def is_slow_spawn(self) -> bool:
        """Whether the worker measured now came up slow."""
        return self._baseline.is_slow_spawn(self.smallest)

    def baseline_summary(self) -> dict[str, Any]:
        """{decode_tok_s, by_prompt_tokens, spawns, runs, quality}."""
        return self._baseline.summary(self.smallest)

    # ---- taking runs in ----

    def worker_replaced(self, generation: int) -> None:
        """Judge another worker, by its own runs."""
        self._baseline.spawned()
        self._begin_life()
        self._verdict = Verdict(Status.UNKNOWN, f"generation {generation} is not measured yet")

    def accept_spawn(self) -> None:
        """The worker came up slow, and so did others: it is the best to be had, and held to its own first runs."""
        self._baseline.accept(self.smallest)
        self._begin_life()

    def observe(self, sample: Sample) -> Verdict:
        """Take one run in; a void one changes nothing."""
        if self.weigh(sample):
            self._verdict = self.say(sample)
        elif sample.void is Void.HOST_SLOW:
            self._verdict = Verdict(Status.UNKNOWN, f"host_slow: {sample.detail}", at=sample.at)
        return self._verdict

    @property
    def status(self) -> Status:
        """What the evidence says, as the verdict would."""
        return self._detector.status

    @property
    def wants_runs(self) -> int:
        """As the verdict would say."""
        return self._detector.wants_runs or self._filling

    @property
    def wants_soon(self) -> bool:
        """As the verdict would say."""
        return self._detector.is_second_due or self._lacking is not None

    def wants_size(self, measured: int) -> int | None:
        """As the verdict would say after a run at ``measured``."""
        return self._detector.wants_size or (measured if self._filling else self._lacking)

    def weigh(self, sample: Sample) -> bool:
        """Take one run in without putting into words what it tells; whether it was clean."""
        rate, size = sample.decode_tok_s, sample.prompt_tokens
        if not sample.is_clean or rate is None:
            return False
        self._budget.share, self._budget.every_s = self.terms.canary.burst_budget, self.terms.canary.every_s
        self._baseline.inflation = max(self.noise.inflation, 1.0)
        self._baseline.add(sample, self.terms.baseline)
        self._rates.setdefault(size, deque(maxlen=REMEMBERED)).append(rate)
        self._steps.add(sample.tokens_per_step)
        self._plain.add(sample.plain_tok_s)
        reference = self._baseline.reference(size)
        if reference is not None:
            self._detector.observe(
                self._run(sample, rate, reference),
                self.terms.degraded,
                observations_a_year(self.terms.canary),
                may_be_mild=reference.is_trusted,
            )
        if self._is_filled:
            self._fill(sample)
        return True

    @staticmethod
    def _run(sample: Sample, rate: float, reference: Reference) -> Run:
        return Run(
            size=sample.prompt_tokens,
            slowness=reference.log_rate - reference.error - math.log(rate) - sample.host_slowness,
            sd=reference.sd,
            at=sample.at,
            is_burst=sample.purpose is Purpose.BURST,
            is_routine=sample.purpose in (Purpose.ROUTINE, Purpose.ASKED),
            took_s=sample.took_s,
        )

    def _fill(self, sample: Sample) -> None:
        """A fresh worker is asked for the runs that the baseline lacks, for it is fresh only once."""
        terms, size = self.terms.baseline, sample.prompt_tokens
        is_fresh = sample.worker_age_s <= terms.fresh_for_s and sample.worker_requests < terms.fresh_requests
        if not (is_fresh or self._filling):
            self._lacking = None
            return
        may_fill = is_fresh and self._budget.can_afford(sample.at)
        if sample.purpose in (Purpose.ROUTINE, Purpose.ASKED):
            self._filling = min(self._baseline.lacks(size), FILLING_RUNS) if may_fill else 0
        elif sample.purpose is Purpose.BURST:
            self._filling = max(self._filling - 1, 0)
        self._lacking = None
        if may_fill:
            most = max(self.terms.canary.prompt_tokens, key=self._baseline.lacks)
            self._lacking = most if self._baseline.lacks(most) else None

    # ---- saying what they tell ----

    def say(self, sample: Sample) -> Verdict:
        """What the evidence tells after this run, in words and numbers."""
        in_doubt = self._detector.size_in_doubt
        is_well = self._detector.status is Status.HEALTHY or in_doubt is None
        size = sample.prompt_tokens if is_well or in_doubt not in self._rates else in_doubt
        reference = self._baseline.reference(size)
        by_size = {each: _typical(rates) for each, rates in sorted(self._rates.items())}
        verdict = Verdict(
            status=Status.UNKNOWN if reference is None else self._detector.status,
            reason=f"no baseline at {size} prompt tokens yet ({plural(self._baseline.runs(size), 'fresh run')})",
            at=sample.at,
            prompt_tokens=size,
            decode_tok_s=by_size.get(self.smallest),
            by_prompt_tokens=tuple(by_size.items()),
            tokens_per_step=self._steps.first_and_last,
            plain_tok_s=self._plain.first_and_last,
            wants_runs=self.wants_runs,
            wants_size=self.wants_size(sample.prompt_tokens),
            wants_soon=self.wants_soon,
        )
        return verdict if reference is None else self._with_evidence(verdict, size, reference)

    def _with_evidence(self, verdict: Verdict, size: int, reference: Reference) -> Verdict:
        runs = REMEMBERED if verdict.status is Status.DEGRADED and not self._detector.is_severe else SEVERE_RUNS
        samples = tuple(self._rates[size])[-runs:]
        slowness = [reference.log_rate - math.log(rate) for rate in samples]
        low, high = hodges_lehmann_interval(slowness)
        ratio, interval = math.exp(-hodges_lehmann(slowness)), (math.exp(-high), math.exp(-low))
        return replace(
            verdict,
            reason=(
                f"{ratio * reference.tok_s:.1f} tok/s at {size} prompt tokens, {share(ratio)} of a fresh worker's "
                f"{reference.tok_s:.1f} ({share(interval[0])} to {share(interval[1])}, {len(samples)} runs)"
            ),
            ratio=ratio,
            interval=interval,
            confidence=1.0 - 1.0 / max(self._detector.evidence, 1.0),
            samples=samples,
            baseline_tok_s=reference.tok_s,
        )

    # ---- what a recycle brought ----

    def compare(self, before: Verdict | None, after: Mapping[int, Sequence[float]]) -> Cure:
        """``cured``, ``partial`` or ``futile``, at the size that was convicted where the new worker ran it too."""
        size = self.smallest
        if before is not None and before.prompt_tokens in after and before.prompt_tokens is not None:
            size = before.prompt_tokens
        new, fresh = median(after[size]), self._baseline.fresh_tok_s(size)
        if before is not None and before.samples and new < NOTICEABLE * self._old_rate(before, size):
            return "futile"
        if fresh is not None and new < self.terms.degraded.below * fresh:
            return "partial"
        return "cured"

    def _old_rate(self, before: Verdict, size: int) -> float:
        """The old worker's rate at ``size``; if it was convicted at another one, by what it was of the baseline."""
        there, here = before.baseline_tok_s, self._baseline.fresh_tok_s(size)
        is_same = before.prompt_tokens in (None, size) or there is None or here is None
        return median(before.samples) * (1.0 if is_same or there is None or here is None else here / there)

    def anchor_anew(self, rates: Sequence[float]) -> str:
        """Replacements brought nothing, again and again: what fresh means is measured on what the machine does now.

        Returns what was done, in words; empty where the new worker has too few runs to tell.
        """
        was, moved = self.fresh_tok_s, self._baseline.anchor_anew(self.smallest, rates)
        if was is None or moved is None:
            return ""
        self._begin_life()
        return f"the machine has changed, not the process: fresh now means {was * moved:.1f} tok/s, no longer {was:.1f}"

    # ---- outliving the daemon ----

    def reset(self) -> None:
        """Forget what fresh means; the worker is judged again once five fresh runs are in."""
        self._baseline, self.noise = Baseline(), LaneNoise()
        self._begin_life()
        self._verdict = Verdict(Status.UNKNOWN, "the baseline was reset")

    def to_json(self) -> dict[str, Any]:
        """Baseline, noise and budget: a life is judged by its own runs and does not outlive the daemon."""
        return {**self._baseline.to_json(), "noise": self.noise.to_json(), "bursts": self._budget.to_json()}

    def restore(self, document: Mapping[str, Any]) -> None:
        """Take up what ``to_json`` gave."""
        self._baseline = Baseline.from_json(document)
        noise = document.get("noise")
        self.noise = LaneNoise.from_json(noise if isinstance(noise, Mapping) else {})
        bursts = document.get("bursts")
        self._budget = BurstBudget(self.terms.canary.burst_budget, self.terms.canary.every_s)
        self._budget.restore(bursts if isinstance(bursts, Mapping) else {})
        self._begin_life()


def _typical(rates: Sequence[float]) -> float:
    return median(tuple(rates)[-SEVERE_RUNS:])
