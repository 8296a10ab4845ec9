"""The trial of the remedies of one conviction: the remedy at hand, its runs, and what they say it brought."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from statistics import median

from supervisor.core.account.record import Cause, Effect, RemedyFacts
from supervisor.core.samples import Verdict
from supervisor.core.terms import RemedyName

RESTORED = 0.95
"""Of a fresh worker's rate: the remedy has cured it."""

NOTICEABLE = 1.12
"""A worker not faster by this factor got nothing from it."""

RUNS = 5
"""Clean runs that tell what a remedy brought."""

RUNS_THAT_REFUTE = 3
"""If so many find nothing, not one of them, the rest need not be waited for."""


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

    @property
    def wants_runs(self) -> bool:
        """Whether its runs do not tell yet what the remedy at hand brought."""
        if len(self.rates) >= RUNS:
            return False
        least = min(RESTORED * self.fresh_tok_s, NOTICEABLE * self.rate_tok_s)
        return len(self.rates) < RUNS_THAT_REFUTE or max(self.rates) >= least

    @property
    def effect(self) -> Effect:
        """What the remedy at hand brought, by its runs."""
        now = median(self.rates)
        if now >= RESTORED * self.fresh_tok_s:
            return Effect.CURED
        return Effect.PARTIAL if now >= NOTICEABLE * self.rate_tok_s else Effect.FUTILE

    def conclude(self, effect: Effect) -> RemedyFacts:
        """The remedy at hand came to this; what the record says of it."""
        now = median(self.rates) if self.rates else None
        ratio = now / self.fresh_tok_s if now is not None else None
        facts = RemedyFacts(self.name, now, self.rate_tok_s, ratio, self.took_s, effect)
        self.tried.append(facts)
        self.rate_tok_s = now or self.rate_tok_s
        return facts

    def turn_to_next(self) -> bool:
        """Leave the remedy at hand behind; whether there is another."""
        self.left.pop(0)
        self.is_applied, self.rates, self.took_s = False, [], 0.0
        return bool(self.left)
