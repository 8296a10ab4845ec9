"""The way beside: a candidate proves itself next to the active worker, takes over in one step, and the old one retires.

Its proof counts only while nothing else runs, so the gate is held for a moment. A candidate that is no faster is
thrown away before anything was stopped: the host is slow, not the process. One that cannot be measured undisturbed
gives way to a recycle in place.
"""

from __future__ import annotations

from enum import StrEnum

from supervisor.core.account.record import Outcome
from supervisor.core.lane.body import LaneBody
from supervisor.core.lane.commands import (
    CutRequests,
    HoldGate,
    KillWorker,
    OpenGate,
    ReleaseRecycleSlot,
    RunCanary,
    WriteIntent,
)
from supervisor.core.lane.recycler import Recycler
from supervisor.core.recycle.replacement import PROOF_VOID_LIMIT, Replacement, Step
from supervisor.core.samples import Purpose, Sample, Void
from supervisor.core.terms import Replace, TimerName, Trigger


class Proof(StrEnum):
    """What a run of the candidate led to."""

    GOES_ON = "goes_on"
    TOOK_OVER = "took_over"
    DISCARDED = "discarded"
    POSTPONED = "postponed"


class Overlap:
    """Candidate and retiring workers of one lane."""

    def __init__(self, body: LaneBody, recycler: Recycler) -> None:
        self._body = body
        self._recycler = recycler
        self.proof: list[Sample] = []
        """Clean runs of the candidate, of the proof under way or last."""

    def slot_granted(self, at: float) -> None:
        """The fleet lets this lane recycle now: go the way the replacement wants."""
        replacement, body = self._recycler.under_way, self._body
        if replacement is None or replacement.step is not Step.WAITING_SLOT:
            body.say(ReleaseRecycleSlot())
            return
        replacement.has_slot = True
        if replacement.replace is Replace.OVERLAP:
            replacement.step = Step.STARTING
            body.reason = f"{replacement.reason}; a new worker starts beside this one"
            body.begin_candidate(at)
        else:
            self._recycler.wait_for_idle(at, replacement)

    # ---- the candidate ----

    def candidate_ready(self, at: float) -> None:
        """The candidate is up: prove it while nothing else runs."""
        replacement = self._recycler.under_way
        if replacement is None:
            self._recycler.drop_candidate(at)
            return
        replacement.step = Step.PROVING
        self.proof = []
        self.begin_proof()

    def begin_proof(self) -> None:
        """Hold the gate for a moment, so that the candidate's runs are undisturbed."""
        if self._is_proving:
            self._body.say(HoldGate("a new worker is being measured"))
            self._body.arm(TimerName.PROOF, self._body.terms.canary.hold_s)

    @property
    def _is_proving(self) -> bool:
        return self._recycler.under_way is not None and self._recycler.under_way.step is Step.PROVING

    def gate_emptied(self) -> bool:
        """The gate is held and nothing is in flight.

        Returns whether it was held for a proof, whose first run is then sent.
        """
        if self._is_proving:
            self._run(has_warmup=True)
        return self._is_proving

    def _run(self, *, has_warmup: bool = False) -> None:
        candidate, replacement = self._body.workers.candidate, self._recycler.under_way
        size = replacement.next_size() if replacement else None
        if candidate and replacement and size is not None:
            generation, model = candidate.generation, replacement.model
            self._body.say(RunCanary(generation, size, Purpose.PROOF, has_warmup=has_warmup, model=model))

    def proved(self, sample: Sample, at: float) -> Proof:
        """A run of the candidate came back."""
        replacement = self._recycler.under_way
        if replacement is None or replacement.step is not Step.PROVING:
            return Proof.GOES_ON
        if sample.is_clean and sample.decode_tok_s is not None:
            self.proof.append(sample)
            replacement.took(sample.prompt_tokens, sample.decode_tok_s)
            if replacement.next_size() is not None:
                self._run()
                return Proof.GOES_ON
        elif sample.void is not Void.UNMEASURABLE:
            return self.disturbed(at)
        self._body.disarm(TimerName.PROOF)
        if replacement.is_for_slowness and self._recycler.outcome(replacement) is Outcome.FUTILE:
            self._body.say(OpenGate(self._body.active.generation))
            self._recycler.give_up(at, Outcome.FUTILE)
            return Proof.DISCARDED
        self._take_over(at, replacement)
        return Proof.TOOK_OVER

    def disturbed(self, at: float) -> Proof:
        """The proof found no quiet moment: open again, and try later or fall back to in place."""
        replacement, body = self._recycler.under_way, self._body
        if replacement is None or replacement.step is not Step.PROVING:
            return Proof.GOES_ON
        replacement.proof_voids += 1
        body.disarm(TimerName.PROOF)
        body.say(OpenGate(body.active.generation))
        if replacement.proof_voids < PROOF_VOID_LIMIT:
            body.arm(TimerName.RETRY, body.terms.canary.hold_s)
            return Proof.POSTPONED
        body.note("the candidate could not be measured undisturbed: recycling in place")
        replacement.replace = Replace.IN_PLACE
        replacement.rates_by_size.clear()
        self._recycler.drop_candidate(at)
        self._recycler.wait_for_idle(at, replacement)
        return Proof.POSTPONED

    def _take_over(self, at: float, replacement: Replacement) -> None:
        body = self._body
        replacement.remember(body.active, at)
        replacement.step = Step.RETIRING
        replacement.closed_at = replacement.opened_at = at
        body.say(WriteIntent(replacement.record(None)))
        body.workers.promote()
        body.owed = None
        body.serve(at, f"generation {body.active.generation} took over")
        body.arm(TimerName.RETIRE, body.terms.drain_timeout_s)

    def candidate_lost(self, at: float, reason: str) -> None:
        """The candidate died or did not start in time; the active worker serves on."""
        body = self._body
        body.note(f"the new worker did not come up: {reason}")
        if self._is_proving:
            body.say(OpenGate(body.active.generation))
        body.disarm(TimerName.ROOM, TimerName.START)
        self._recycler.give_up(at, Outcome.FAILED)

    # ---- the old one ----

    @property
    def can_step_in(self) -> bool:
        """Whether a candidate can follow a worker that hangs before that is gone: it must be sure to go."""
        workers = self._body.workers
        return workers.candidate is not None and not workers.retiring and self._body.terms.may_kill

    def leave_behind(self, at: float, evidence: str) -> None:
        """The old worker hangs: cut what it has and tell it to stop, without waiting for it."""
        body, hung = self._body, self._body.active
        self._recycler.lost(at, hung, evidence, Trigger.HUNG)
        if self._recycler.under_way:
            body.say(WriteIntent(self._recycler.under_way.record(None)))
        body.say(CutRequests(hung.generation, evidence))
        hung.is_empty = True
        body.retire(hung, at)

    def retired_emptied(self, generation: int, at: float) -> None:
        """The old worker has finished its last request."""
        worker = self._body.workers.retiring.get(generation)
        if worker is None or worker.is_empty:
            return
        worker.is_empty = True
        replacement = self._recycler.under_way
        if replacement and replacement.step is Step.RETIRING:
            replacement.unserved_at = replacement.stop_sent_at = at
        self._body.retire(worker, at)

    def retire_ran_out(self, at: float) -> None:
        """A retiring worker takes long: cut clients that stopped reading, or end one that ignores its signal."""
        body = self._body
        for worker in body.workers.retiring.values():
            if worker.stop_sent_at is None:
                body.say(CutRequests(worker.generation, "the client stopped reading", only_stalled=True))
            elif not body.terms.may_kill:
                body.note(f"worker {worker.pid} ignores its stop signal; end it with: kill -9 {worker.pid}")
            elif at - worker.stop_sent_at >= worker.stop_patience_s(body.terms.stop_timeout_s):
                body.say(KillWorker(worker.generation))
                self._recycler.killed()
        if body.workers.retiring:
            body.arm(TimerName.RETIRE, body.terms.canary.hold_s)

    def retired_gone(self, generation: int, at: float) -> None:
        """A retiring worker's process ended."""
        self._body.workers.retiring.pop(generation, None)
        replacement = self._recycler.under_way
        if replacement and replacement.old.generation == generation and replacement.exited_at is None:
            replacement.exited_at = at
            if replacement.step is Step.RETIRING:
                self._recycler.finish(at)
