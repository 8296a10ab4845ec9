"""The last look at a convicted worker, where an idle moment to replace it was long in coming.

The conviction rests on canaries of before; since then they have rested. What was wrong may be gone: then the worker
serves on, and no process was touched. It goes on for no longer than the wait for an idle moment itself.
"""

from __future__ import annotations

from supervisor.core.account.record import Outcome
from supervisor.core.lane.body import LaneBody
from supervisor.core.lane.commands import RunCanary, WatchIdle
from supervisor.core.lane.recycler import Recycler
from supervisor.core.recycle.replacement import PROOF_VOID_LIMIT, Replacement, Step
from supervisor.core.samples import Purpose, Sample, Status
from supervisor.core.speed.detector import RECOVERED_RUNS
from supervisor.core.speed.judge import Judge
from supervisor.core.terms import Trigger


class LastLook:
    """Of the recycle under way."""

    def __init__(self, body: LaneBody, judge: Judge, recycler: Recycler) -> None:
        self._body = body
        self._judge = judge
        self._recycler = recycler

    @property
    def is_under_way(self) -> bool:
        """Whether its runs are out."""
        return self._recycler.under_way is not None and self._recycler.under_way.step is Step.LOOKING

    def idled(self, at: float) -> None:
        """The idle moment that the recycle waits for: look once more if the conviction is old, else drain."""
        replacement = self._recycler.under_way
        if replacement is None or replacement.step is not Step.WAITING_IDLE:
            return
        is_old = at - replacement.begun_at > self._body.terms.canary.every_s
        if replacement.trigger is Trigger.DEGRADED and is_old and replacement.look_voids < PROOF_VOID_LIMIT:
            replacement.step = Step.LOOKING
            self._run(replacement)
        else:
            self._recycler.drain_old(at)

    def _run(self, replacement: Replacement) -> None:
        convicted = replacement.before.prompt_tokens if replacement.before else None
        size = convicted or replacement.smallest
        is_first = replacement.looks == 0
        generation, model = self._body.active.generation, replacement.model
        self._body.say(RunCanary(generation, size, Purpose.BURST, has_warmup=is_first, model=model))

    def looked(self, sample: Sample, at: float) -> bool:
        """A run came back; whether the worker is found well, and the recycle given up."""
        replacement = self._recycler.under_way
        if replacement is None or replacement.step is not Step.LOOKING:
            return False
        if not sample.is_clean:
            replacement.look_voids += 1
            replacement.step = Step.WAITING_IDLE
            self._body.say(WatchIdle())
            return False
        replacement.looks += 1
        if replacement.looks < RECOVERED_RUNS:
            self._run(replacement)
            return False
        if self._judge.verdict.status is Status.DEGRADED:
            self._recycler.drain_old(at)
            return False
        self._recycler.give_up(at, Outcome.ABORTED, "a last look found the worker well again: it serves on")
        return True
