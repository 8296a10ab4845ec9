"""Mild remedies before a recycle: what a degraded worker itself can undo, one after the other, each measured.

A remedy waits for a quiet moment: first with the gate open, then in one short hold, as a canary does. It is applied,
and a burst of canaries tells what it brought. One that restores the speed ends it, and no process is touched; else the
next follows, then the recycle. A client that arrives meanwhile goes first: the run is void, and taken again.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from statistics import median

from supervisor.core.account.record import Cause, CauseKind, Effect, RemedyFacts
from supervisor.core.lane.body import LaneBody
from supervisor.core.lane.commands import ApplyRemedy, HoldGate, OpenGate, RunCanary, WatchIdle
from supervisor.core.lane.events import RemedyAnswer, RemedyApplied
from supervisor.core.recycle.remedy_trial import Step, Trial
from supervisor.core.samples import Purpose, Sample, Verdict, Void
from supervisor.core.states import SERVES
from supervisor.core.terms import RemedyName, TimerName

DISTURBED_LIMIT = 5
"""So many void runs, and the recycle no longer waits for the remedies."""

PAUSE_S = 1.0
"""After a void run."""

APPLY_TIMEOUT_S = 30.0
"""How long a worker may take over a remedy."""

ANSWER_GRACE_S = 5.0
CLOCK_GRAIN_S = 0.05

REMEDIES_FOR: Mapping[CauseKind, tuple[RemedyName, ...]] = {
    CauseKind.ACCEPTANCE: (RemedyName.SPECULATION_OFF,),
    CauseKind.MEMORY_PRESSURE: (RemedyName.CLEAR_CACHE, RemedyName.DROP_PREFIX_CACHE),
    CauseKind.WORKER_AGED: (RemedyName.CLEAR_CACHE, RemedyName.DROP_PREFIX_CACHE),
}
"""Mild first. Speculation that lost its yield is all that switching it off can undo."""


class Relief(StrEnum):
    """How the trial of the remedies stands."""

    GOES_ON = "goes_on"
    CURED = Effect.CURED
    EXHAUSTED = "exhausted"


class Remedies:
    """The remedies of one lane: at most one trial, of the active worker."""

    def __init__(self, body: LaneBody) -> None:
        self._body = body
        self.trial: Trial | None = None
        self._absent: set[RemedyName] = set()
        self._tried: list[RemedyFacts] = []
        self._generation = 0

    # ---- beginning and ending ----

    def to_try(self, at: float, cause: Cause) -> list[RemedyName]:
        """What this lane's worker offers against the cause, and is not known to bring nothing."""
        self._look_at_generation()
        offered = [name for name in REMEDIES_FOR.get(cause.kind, ()) if name in self._body.terms.remedies]
        return [name for name in offered if name not in self._absent and self._body.remedies.may_try(name, at)]

    def tried(self) -> tuple[RemedyFacts, ...]:
        """What was tried on the active worker since it was last well, for the record of what follows."""
        self._look_at_generation()
        return tuple(self._tried)

    def _look_at_generation(self) -> None:
        generation = self._body.active.generation
        if generation != self._generation:
            self._generation = generation
            self._absent.clear()
            self._tried = []

    def begin(self, names: list[RemedyName], verdict: Verdict, cause: Cause, at: float) -> bool:
        """Try these, in this order; whether the verdict says enough to measure them by."""
        if not names or verdict.prompt_tokens is None or verdict.baseline_tok_s is None or not verdict.samples:
            return False
        self._look_at_generation()
        self.trial = Trial(
            self._generation,
            verdict,
            cause,
            size=verdict.prompt_tokens,
            fresh_tok_s=verdict.baseline_tok_s,
            rate_tok_s=median(verdict.samples),
            left=list(names),
        )
        self._wait(self.trial, at)
        return True

    def drop(self) -> None:
        """Something else is done with the lane: let go of the gate and forget the trial."""
        trial, self.trial = self.trial, None
        if trial:
            self._body.disarm(TimerName.REMEDY)
            self._let_go(trial)

    def _let_go(self, trial: Trial) -> None:
        if trial.holds_gate:
            trial.holds_gate = False
            if self._body.state in SERVES:
                self._body.say(OpenGate(self._body.active.generation))

    # ---- a quiet moment ----

    def _arm(self, trial: Trial, at: float, after_s: float) -> None:
        trial.due_at = at + after_s
        self._body.arm(TimerName.REMEDY, after_s)

    def _wait(self, trial: Trial, at: float) -> None:
        terms = self._body.terms
        trial.step = Step.WAITING
        self._body.reason = f"{trial.verdict.reason}; tries {trial.name} in an idle moment"
        self._arm(trial, at, min(terms.recycle.wait_idle_s, terms.canary.hold_s))
        self._body.say(WatchIdle())

    def gate_idled(self, at: float) -> None:
        """An idle moment, with the gate open."""
        if self.trial and self.trial.step is Step.WAITING:
            self._body.disarm(TimerName.REMEDY)
            self._go_on(self.trial, at)

    def gate_emptied(self, at: float) -> bool:
        """Nothing is in flight behind a held gate; whether it was held for a remedy."""
        is_mine = self.trial is not None and self.trial.holds_gate
        if self.trial and self.trial.step is Step.HOLDING:
            self._go_on(self.trial, at)
        return is_mine

    def time_passed(self, at: float) -> Relief:
        """The wait under way is over."""
        trial, body = self.trial, self._body
        if trial is None or at < trial.due_at - CLOCK_GRAIN_S:
            return Relief.GOES_ON
        match trial.step:
            case Step.PAUSING:
                self._wait(trial, at)
            case Step.WAITING:
                trial.step, trial.holds_gate = Step.HOLDING, True
                body.say(HoldGate(f"{trial.name} needs a quiet moment"))
                self._arm(trial, at, body.terms.canary.hold_s)
            case Step.HOLDING:
                body.note(f"no quiet moment for {trial.name}")
                if trial.is_applied:
                    self._tried.append(trial.conclude(Effect.UNMEASURED))
                return Relief.EXHAUSTED
            case _ if trial.holds_gate:  # clients have waited long enough; what runs goes on without them waiting
                self._let_go(trial)
                self._arm(trial, at, APPLY_TIMEOUT_S + ANSWER_GRACE_S)
            case Step.APPLYING:
                return self._concluded(trial, Effect.FAILED, at)
            case Step.MEASURING:
                pass
        return Relief.GOES_ON

    def _go_on(self, trial: Trial, at: float) -> None:
        if trial.is_applied:
            self._run(trial)
            return
        trial.step = Step.APPLYING
        self._body.say(ApplyRemedy(trial.generation, trial.name, APPLY_TIMEOUT_S))
        if not trial.holds_gate:
            self._arm(trial, at, APPLY_TIMEOUT_S + ANSWER_GRACE_S)

    # ---- the remedy and what it brought ----

    def applied(self, event: RemedyApplied) -> Relief:
        """The worker answered."""
        trial = self.trial
        if trial is None or trial.step is not Step.APPLYING or event.name is not trial.name:
            return Relief.GOES_ON
        trial.took_s = event.took_s
        match event.answer:
            case RemedyAnswer.ABSENT:
                self._absent.add(trial.name)
                return self._next(trial, event.at)
            case RemedyAnswer.FAILED:
                self._body.note(f"{trial.name} failed: {event.detail}")
                return self._concluded(trial, Effect.FAILED, event.at)
            case _:
                trial.is_applied = True
                self._run(trial)
                return Relief.GOES_ON

    def _run(self, trial: Trial) -> None:
        trial.step = Step.MEASURING
        is_first = not trial.rates
        model = trial.verdict.model
        self._body.say(RunCanary(trial.generation, trial.size, Purpose.REMEDY, has_warmup=is_first, model=model))

    def measured(self, sample: Sample, at: float) -> Relief:
        """A run came back."""
        trial = self.trial
        if trial is None or trial.step is not Step.MEASURING:
            return Relief.GOES_ON
        if sample.is_clean and sample.decode_tok_s is not None:
            if (sample.model, sample.prompt_tokens) == (trial.verdict.model, trial.size):
                trial.rates.append(sample.decode_tok_s)
            if trial.wants_runs:
                self._run(trial)
                return Relief.GOES_ON
            return self._concluded(trial, trial.effect, at)
        trial.disturbed += 1
        self._let_go(trial)
        if trial.disturbed >= DISTURBED_LIMIT or sample.void is Void.UNMEASURABLE:
            self._tried.append(trial.conclude(Effect.UNMEASURED))
            return Relief.EXHAUSTED
        trial.step = Step.PAUSING
        self._arm(trial, at, PAUSE_S)
        return Relief.GOES_ON

    def _concluded(self, trial: Trial, effect: Effect, at: float) -> Relief:
        self._tried.append(trial.conclude(effect))
        if effect is Effect.CURED:
            self._body.remedies.helped(trial.name)
            self._tried = []
            return Relief.CURED
        self._body.remedies.brought_nothing(trial.name, at)
        return self._next(trial, at)

    def _next(self, trial: Trial, at: float) -> Relief:
        if not trial.turn_to_next():
            return Relief.EXHAUSTED
        if trial.holds_gate:
            self._go_on(trial, at)
        else:
            self._wait(trial, at)
        return Relief.GOES_ON
