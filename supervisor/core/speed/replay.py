"""What the judge would have said to numbers recorded elsewhere, when, and what a recycle then would have kept.

A record is a list of runs of one or more workers. It was measured without the judge, so its bursts are taken from the
runs that follow, and nothing happens after a conviction but what happened then.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from supervisor.core.samples import Purpose, Sample, Status, Verdict
from supervisor.core.speed.speed_judge import SpeedJudge
from supervisor.core.terms import CanaryTerms, LaneTerms


@dataclass(frozen=True, slots=True)
class Recorded:
    """One run. ``at``: seconds since the record began. ``worker``: counts processes."""

    at: float
    tok_s: float
    prompt_tokens: int
    worker: int


@dataclass(frozen=True, slots=True)
class Said:
    """The judge's mind changed with this run; ``age_s`` is the worker's age by the record."""

    at: float
    worker: int
    age_s: float
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Loss:
    """What one worker lost after its conviction, had it written all the time. Tokens; seconds."""

    worker: int
    lasted_s: float
    written: float
    fresh: float

    @property
    def kept(self) -> float:
        """Tokens that a fresh worker would have written on top."""
        return self.fresh - self.written


def replay(runs: Sequence[Recorded], every_s: float) -> list[Said]:
    """Each change of the verdict's status, in order. ``every_s``: how often the lane is taken to be probed."""
    sizes = tuple(sorted({run.prompt_tokens for run in runs}))
    judge = SpeedJudge.new(LaneTerms(canary=CanaryTerms(every_s=every_s, prompt_tokens=sizes)))
    said: list[Said] = []
    worker, began = None, 0.0
    for run in runs:
        if run.worker != worker:
            worker, began = run.worker, run.at
            judge.worker_replaced(run.worker)
        before = judge.verdict.status
        verdict = judge.observe(_sample(run, run.at - began, is_burst=judge.wants_runs > 0))
        if verdict.status is not before:
            said.append(Said(run.at, run.worker, run.at - began, verdict))
    return said


def _sample(run: Recorded, age_s: float, *, is_burst: bool) -> Sample:
    purpose = Purpose.BURST if is_burst else Purpose.ROUTINE
    return Sample(run.at, run.at, run.worker, run.prompt_tokens, purpose, run.tok_s, tokens=64, worker_age_s=age_s)


def losses(runs: Sequence[Recorded], said: Sequence[Said]) -> Iterator[Loss]:
    """Of each worker that was convicted: from then to its last recorded run."""
    for verdict_at in said:
        fresh = verdict_at.verdict.baseline_tok_s
        if verdict_at.verdict.status is not Status.DEGRADED or fresh is None:
            continue
        rest = [run for run in runs if run.worker == verdict_at.worker and run.at >= verdict_at.at]
        lasted_s = rest[-1].at - rest[0].at
        written = sum((late.at - early.at) * (early.tok_s + late.tok_s) / 2 for early, late in pairwise(rest))
        yield Loss(verdict_at.worker, lasted_s, written, fresh * lasted_s)


def slow_from_the_start(runs: Sequence[Recorded]) -> tuple[int, float, int, float] | None:
    """A size that is far slower than a smaller one in the same worker's runs: (small, its rate, large, its rate).

    If no run at the large size was ever faster, that is the context, not age.
    """
    by_size: dict[int, list[float]] = {}
    for run in runs:
        by_size.setdefault(run.prompt_tokens, []).append(run.tok_s)
    small, large = min(by_size), max(by_size)
    if small == large or max(by_size[large]) > min(by_size[small]) / 2:
        return None
    return small, _middle(by_size[small]), large, _middle(by_size[large])


def _middle(rates: Sequence[float]) -> float:
    return sorted(rates)[len(rates) // 2]
