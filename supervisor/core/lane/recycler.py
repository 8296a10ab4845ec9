"""Replacing a lane's worker: from the wish to the record, and the way in place.

In place: wait for a slot of the fleet, wait for an idle moment with the gate open, hold the gate, drain, stop,
start, verify, open. A recycle for slowness that finds no quiet moment is aborted and tried later; it never cuts a
stream. The other way, a new worker beside the old one, is in ``overlap``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from supervisor.core.account.cause import cause_of
from supervisor.core.account.record import AfterSpeed, Cause, CauseKind, Outcome, RemedyFacts
from supervisor.core.lane.body import Goal, LaneBody
from supervisor.core.lane.commands import (
    AskRecycleSlot,
    CutRequests,
    ReleaseRecycleSlot,
    WatchIdle,
    WriteIntent,
    WriteRecord,
)
from supervisor.core.recycle.replacement import Replacement, Step
from supervisor.core.samples import Sample, Verdict
from supervisor.core.speed.judge import Judge
from supervisor.core.states import SERVES, LaneState
from supervisor.core.terms import Replace, TimerName, Trigger
from supervisor.core.workers import Worker

CUT_GRACE_S = 1.0
"""After clients that stopped reading were cut, the rest of the drain gets this long before it is aborted."""

SHORTEST_DRAIN_SHARE = 0.1
"""A drain gets at least this share of ``max_hold``, even where starting a worker takes longer than that."""

ASKED_FOR = frozenset({Trigger.OPERATOR, Trigger.CONFIG})
"""What a person does takes nothing from the budget of what the lane does by itself."""

URGENT = frozenset({Trigger.HUNG, Trigger.MEMORY})
_CAN_BE_URGED = SERVES | {LaneState.DRAINING, LaneState.DRAINED, LaneState.WARMING}


class Recycler:
    """The replacement of one lane's worker, if one is under way."""

    def __init__(self, body: LaneBody, judge: Judge) -> None:
        self._body = body
        self._judge = judge
        self.under_way: Replacement | None = None

    # ---- beginning ----

    def begin(
        self,
        at: float,
        trigger: Trigger,
        reason: str,
        *,
        is_now: bool = False,
        before: Verdict | None = None,
        remedies: tuple[RemedyFacts, ...] = (),
    ) -> None:
        """Begin a recycle, or make the one under way more urgent."""
        body = self._body
        if self.under_way:
            if (is_now or trigger in URGENT) and body.state in _CAN_BE_URGED:
                self._urge(at, self.under_way, trigger, reason, is_now=is_now)
            return
        can_overlap = body.state in SERVES and not is_now and trigger not in URGENT
        replace = body.replace if can_overlap else Replace.IN_PLACE
        replacement = Replacement(body.name, trigger, reason, at, replace, is_now=is_now, before=before)
        of_other = before is not None and bool(before.model)
        replacement.baseline_tok_s = before.baseline_tok_s if before and of_other else self._judge.fresh_tok_s
        replacement.smallest = min(body.terms.canary.prompt_tokens)
        replacement.cause = cause_of(trigger, body.life.evidence(before), reason)
        replacement.remedies = remedies
        replacement.remember(body.active, at)
        self.under_way = replacement
        if trigger not in ASKED_FOR:
            body.allowance.begun(at)
        if replacement.may_cut or body.state not in SERVES:
            self._cut_and_stop(at, replacement)
        else:
            body.say(AskRecycleSlot())

    def _urge(self, at: float, replacement: Replacement, trigger: Trigger, reason: str, *, is_now: bool) -> None:
        replacement.is_now = replacement.is_now or is_now
        replacement.trigger, replacement.reason = trigger, reason
        replacement.cause = cause_of(trigger, self._body.life.evidence(replacement.before), reason)
        self.drop_candidate(at)
        self._cut_and_stop(at, replacement)

    def _cut_and_stop(self, at: float, replacement: Replacement) -> None:
        replacement.replace = Replace.IN_PLACE
        if replacement.may_cut:
            self._body.say(CutRequests(self._body.active.generation, replacement.reason))
        self.stop_old(at)

    def lost(self, at: float, old: Worker, reason: str, trigger: Trigger = Trigger.CRASHED) -> None:
        """The active worker died, its owner replaced it, or it hangs: whatever was under way is now about that."""
        if self.under_way and self.under_way.step in (Step.VERIFYING, Step.RETIRING):
            self.finish(at)
        replacement = self.under_way
        if replacement is None:
            replacement = Replacement(self._body.name, trigger, reason, at, Replace.IN_PLACE)
            replacement.baseline_tok_s = self._judge.fresh_tok_s
            replacement.smallest = min(self._body.terms.canary.prompt_tokens)
            self.under_way = replacement
        if replacement.unserved_at is None:
            replacement.trigger, replacement.reason = trigger, reason
            replacement.cause = cause_of(trigger, self._body.life.evidence(None), reason)
            replacement.remember(old, at)
            replacement.unserved_at = at
            if trigger is Trigger.HUNG:
                replacement.stop_sent_at = at
            else:
                replacement.exited_at = at
        replacement.replace = Replace.IN_PLACE
        replacement.step = Step.STARTING
        self._body.disarm(TimerName.WAIT_IDLE, TimerName.PROOF, TimerName.RETRY)

    def relieved(self, at: float, before: Verdict, cause: Cause, remedies: tuple[RemedyFacts, ...]) -> None:
        """A mild remedy, the last of these, cured the worker: a record is due all the same."""
        body, cure = self._body, remedies[-1]
        told = Replacement(body.name, Trigger.DEGRADED, before.reason, at, body.replace, before=before, cause=cause)
        told.remedies = remedies
        told.remember(body.active, at)
        is_smallest = before.prompt_tokens == min(body.terms.canary.prompt_tokens)
        after = AfterSpeed(cure.decode_tok_s if is_smallest else None, cure.ratio)
        body.say(WriteRecord(dataclasses.replace(told.record(Outcome.CURED), after=after)))

    # ---- in place ----

    def wait_for_idle(self, at: float, replacement: Replacement) -> None:
        """Serve on until nothing is in flight, or until that was waited for long enough."""
        body = self._body
        replacement.step = Step.WAITING_IDLE
        if body.terms.recycle.wait_idle_s <= 0:
            self.drain_old(at)
            return
        body.reason = f"{replacement.reason}; waits for an idle moment to recycle"
        body.arm(TimerName.WAIT_IDLE, body.terms.recycle.wait_idle_s)
        body.say(WatchIdle())

    def drain_old(self, at: float) -> None:
        """An idle moment came, or was waited for long enough: hold new requests and let the rest finish."""
        replacement, body = self.under_way, self._body
        if replacement is None or replacement.step not in (Step.WAITING_IDLE, Step.LOOKING):
            return
        replacement.step = Step.DRAINING
        replacement.closed_at = at
        body.disarm(TimerName.WAIT_IDLE)
        body.drain(at, Goal.RECYCLE, replacement.reason, self._drain_due_s())

    def _drain_due_s(self) -> float:
        terms = self._body.terms
        longest = max(
            terms.recycle.max_hold_s - self._body.start_took_s, SHORTEST_DRAIN_SHARE * terms.recycle.max_hold_s
        )
        return min(terms.drain_timeout_s, longest)

    def drain_ran_out(self) -> None:
        """The drain's deadline came: first cut clients that stopped reading, which may be all that is left."""
        self._body.say(CutRequests(self._body.active.generation, "the client stopped reading", only_stalled=True))
        self._body.arm(TimerName.CUT, CUT_GRACE_S)

    def stop_old(self, at: float) -> None:
        """Nothing is in flight (or it may be cut): make the intent durable, then stop the old worker."""
        replacement, body = self.under_way, self._body
        if replacement is None:
            return
        replacement.remember(body.active, at)
        replacement.step = Step.STOPPING
        replacement.closed_at = at if replacement.closed_at is None else replacement.closed_at
        replacement.unserved_at = replacement.stop_sent_at = at
        body.disarm(TimerName.WAIT_IDLE, TimerName.PROOF, TimerName.RETRY)
        body.say(WriteIntent(replacement.record(None)))
        body.stop_active(at, Goal.RECYCLE, replacement.reason, hands_over=not replacement.may_cut)

    def is_about(self, trigger: Trigger) -> bool:
        """Whether a recycle is under way that this set off."""
        return self.under_way is not None and self.under_way.trigger is trigger

    def stop_sent(self, at: float) -> None:
        """The old worker was sent its signal, after it had saved its prefix cache."""
        if self.under_way and self.under_way.exited_at is None:
            self.under_way.stop_sent_at = at

    def old_gone(self, at: float) -> None:
        """The old worker's process ended."""
        replacement = self.under_way
        if replacement and replacement.exited_at is None:
            replacement.exited_at = at
            replacement.step = Step.STARTING

    def killed(self) -> None:
        """The old worker had to be killed."""
        if self.under_way:
            self.under_way.is_killed = True

    def serving(self, at: float, rates: Mapping[int, Sequence[float]]) -> None:
        """The new worker's gate opened, with these clean rates, by prompt size, measured before."""
        replacement = self.under_way
        if replacement is None:
            return
        replacement.opened_at = at
        replacement.rates_by_size = {size: list(found) for size, found in rates.items()}
        replacement.step = Step.VERIFYING
        if not replacement.is_for_slowness or replacement.next_size() is None:
            self.finish(at)
        else:
            self._body.arm(TimerName.VERIFY, self._body.terms.recycle.verify_timeout_s)

    def verified_by(self, sample: Sample, at: float) -> None:
        """A run of the new worker after its gate opened."""
        replacement, rate = self.under_way, sample.decode_tok_s
        if replacement is None or not sample.is_clean or rate is None:
            return
        if replacement.step is Step.VERIFYING and sample.model == replacement.model:
            replacement.took(sample.prompt_tokens, rate)
            if replacement.next_size() is None:
                self.finish(at)

    # ---- ending ----

    def drop_candidate(self, at: float) -> None:
        """The candidate is not wanted any more."""
        discarded = self._body.workers.discard_candidate()
        if discarded:
            self._body.disarm(TimerName.ROOM, TimerName.START)
            self._body.retire(discarded, at)

    def give_up(self, at: float, outcome: Outcome, following: str = "") -> None:
        """End without a new worker: the old one serves on, or the lane rests."""
        self.drop_candidate(at)
        replacement, body = self.under_way, self._body
        if replacement is None:
            return
        body.disarm(TimerName.WAIT_IDLE, TimerName.PROOF, TimerName.RETRY, TimerName.VERIFY)
        if outcome is Outcome.ABORTED or body.owed:
            body.allowance.try_again_at(at + body.terms.canary.every_s)
        if outcome is Outcome.FUTILE:
            replacement.cause = Cause(CauseKind.HOST_SLOW, (*replacement.cause.evidence, "a new worker is no faster"))
        self._write(at, replacement, outcome, following)

    def finish(self, at: float) -> None:
        """The outcome is known, or was waited for long enough: write the record."""
        replacement = self.under_way
        if replacement is None:
            return
        self._body.disarm(TimerName.VERIFY)
        is_unverified = replacement.is_for_slowness and not replacement.rates
        following = "the new worker could not be measured: not verified" if is_unverified else ""
        self._write(at, replacement, self.outcome(replacement), following)

    def outcome(self, replacement: Replacement) -> Outcome:
        """What the replacement came to, by the rates of the new worker."""
        if replacement.trigger in ASKED_FOR:
            return Outcome.REPLACED
        if not replacement.is_for_slowness:
            return Outcome.CURED
        if not replacement.rates:
            return Outcome.REPLACED
        if replacement.trigger is Trigger.BAD_SPAWN and self._judge.is_slow_spawn:
            return Outcome.BAD_SPAWN
        is_slow = replacement.trigger is not Trigger.AGE
        return Outcome(self._judge.compare(replacement.before if is_slow else None, replacement.rates_by_size))

    def _put_off(self, due: float) -> None:
        """What is owed failed: new settings are tried again, ever more rarely; what a person asked for once is not."""
        body = self._body
        body.allowance.try_again_at(due)
        if body.owed and body.owed[0] is not Trigger.CONFIG:
            body.owed = None

    def _write(self, at: float, replacement: Replacement, outcome: Outcome, following: str) -> None:
        body = self._body
        if outcome in (Outcome.FUTILE, Outcome.PARTIAL, Outcome.FAILED):
            held_off_s = body.allowance.brought_nothing(at)
            if body.owed:
                self._put_off(at + held_off_s)
            following = following or f"no recycle for slowness within {held_off_s / 60:.0f} min"
            if outcome is not Outcome.FAILED and body.allowance.is_time_to_anchor:
                anchored = self._judge.anchor_anew(replacement.rates, replacement.model)
                following = "; ".join(filter(None, (anchored, following)))
        elif outcome is Outcome.CURED and replacement.is_for_slowness:
            body.allowance.cured()
        self.under_way = None
        replacement.ended_at = at
        if replacement.replace is Replace.IN_PLACE and replacement.opened_at is not None:
            body.cost.took(replacement.record(outcome))
        body.say(WriteRecord(replacement.record(outcome, following)))
        if replacement.has_slot:
            body.say(ReleaseRecycleSlot())
