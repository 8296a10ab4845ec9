"""Mild remedies before a recycle: what a degraded worker itself can undo, one after the other, each measured.

A remedy waits for a quiet moment: first with the gate open, then in one short hold, as a canary does. It is applied,
and a burst of canaries tells what it brought. One that restores the speed ends it, and no process is touched; else the
next follows, then the recycle. A client that arrives meanwhile goes first: the run is void, and taken again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from statistics import median

from supervisor.core.body import LaneBody
from supervisor.core.commands import ApplyRemedy, HoldGate, OpenGate, RunCanary, WatchIdle
from supervisor.core.events import RemedyAnswer, RemedyApplied
from supervisor.core.record import Cause, CauseKind, Effect, RemedyFacts
from supervisor.core.samples import Purpose, Sample, Verdict, Void
from supervisor.core.states import SERVES
from supervisor.core.terms import RemedyName, TimerName

RESTORED = 0.95
"""Of a fresh worker's rate: the remedy has cured it."""

NOTICEABLE = 1.12
"""A worker not faster by this factor got nothing from it."""

RUNS = 5
"""Clean runs that tell what a remedy brought."""

RUNS_THAT_REFUTE = 3
"""If so many find nothing, not one of them, the rest need not be waited for."""

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


class Step(StrEnum):
    """How far the remedy at hand has come."""

    WAITING = "waiting"
    HOLDING = "holding"
    APPLYING = "applying"
    MEASURING = "measuring"
    PAUSING = "pausing"


@dataclass
class Trial:
    """The remedies of one conviction."""

    generation: int
    verdict: Verdict
    cause: Cause
    size: int
    fresh_tok_s: float
    rate_tok_s: float
    """What the worker does now: by the verdict, then by the last remedy's runs."""
    left: list[RemedyName]
    step: Step = Step.WAITING
    due_at: float = 0.0
    """When the wait under way is over; a timer that fires before was of an earlier one."""
    is_applied: bool = False
    holds_gate: bool = False
    took_s: float = 0.0
    disturbed: int = 0
    rates: list[float] = field(default_factory=list)
    tried: list[RemedyFacts] = field(default_factory=list)

    @property
    def name(self) -> RemedyName:
        """The remedy at hand."""
        return self.left[0]


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
                    self._tell(trial, Effect.UNMEASURED)
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
            if len(trial.rates) < RUNS and not self._is_refuted(trial):
                self._run(trial)
                return Relief.GOES_ON
            return self._concluded(trial, self._outcome(trial), at)
        trial.disturbed += 1
        self._let_go(trial)
        if trial.disturbed >= DISTURBED_LIMIT or sample.void is Void.UNMEASURABLE:
            self._tell(trial, Effect.UNMEASURED)
            return Relief.EXHAUSTED
        trial.step = Step.PAUSING
        self._arm(trial, at, PAUSE_S)
        return Relief.GOES_ON

    @staticmethod
    def _is_refuted(trial: Trial) -> bool:
        least = min(RESTORED * trial.fresh_tok_s, NOTICEABLE * trial.rate_tok_s)
        return len(trial.rates) >= RUNS_THAT_REFUTE and max(trial.rates) < least

    @staticmethod
    def _outcome(trial: Trial) -> Effect:
        now = median(trial.rates)
        if now >= RESTORED * trial.fresh_tok_s:
            return Effect.CURED
        return Effect.PARTIAL if now >= NOTICEABLE * trial.rate_tok_s else Effect.FUTILE

    def _tell(self, trial: Trial, outcome: Effect) -> None:
        now = median(trial.rates) if trial.rates else None
        ratio = now / trial.fresh_tok_s if now is not None else None
        facts = RemedyFacts(trial.name, now, trial.rate_tok_s, ratio, trial.took_s, outcome)
        trial.tried.append(facts)
        self._tried.append(facts)
        trial.rate_tok_s = now or trial.rate_tok_s

    def _concluded(self, trial: Trial, outcome: Effect, at: float) -> Relief:
        self._tell(trial, outcome)
        if outcome is Effect.CURED:
            self._body.remedies.helped(trial.name)
            self._tried = []
            return Relief.CURED
        self._body.remedies.brought_nothing(trial.name, at)
        return self._next(trial, at)

    def _next(self, trial: Trial, at: float) -> Relief:
        trial.left.pop(0)
        trial.is_applied, trial.rates, trial.took_s = False, [], 0.0
        if not trial.left:
            return Relief.EXHAUSTED
        if trial.holds_gate:
            self._go_on(trial, at)
        else:
            self._wait(trial, at)
        return Relief.GOES_ON
