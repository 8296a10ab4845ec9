"""How many tokens to draft now, where 0 is always an answer. Pure: time comes in as data, so a day can be replayed.

Plain decoding is the reference arm. A draft length is chosen when what it is expected to give, over what it costs,
beats a plain step: with a margin and a lower bound to begin, by the estimate to go on. A ledger keeps the time lost
that way under one hundredth of the time decoded, plus one cycle; a few cycles' worth of time won within the same
sequence may be lost again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from engine.acceptance import CAUTION, Acceptance, Shadows
from engine.costs import Costs
from engine.drafters import Draft

ENTER = 1.03
LEAVE = 1.00
LOSS_SHARE = 0.01
CREDIT_CYCLES = 3.0
"""Time won pays for at most so many lost cycles later in the sequence."""
REFRESH_CYCLES = 64
"""Cycles after which plain steps are measured again; where speculation wins by half or more, four times as many."""
REFRESH_STEPS = 16
UNSTEADY_STEPS = 2
"""The first plain steps after a cycle fill the pipeline and are not representative."""


@dataclass
class _Choice:
    k: int = 0
    gain: float = 0.0
    why: str = "no request yet"


class Controller:
    """Chooses draft lengths for one model on one machine; what it has learned carries over from request to request."""

    def __init__(self, costs: Costs, acceptance: Acceptance, *, widest: int) -> None:
        self.costs = costs
        self.acceptance = acceptance
        self.widest = widest
        self._shadows = Shadows(acceptance)
        self._is_speculating = False
        self._cycles_since_plain = 0
        self._plain_run = 0
        self._refresh_left = 0
        self._credit = 0.0
        self._last = _Choice()

    def sequence_began(self) -> None:
        """New content: speculation has to prove itself again, and what was won before pays for nothing."""
        self._is_speculating = False
        self._credit = min(self._credit, 0.0)
        self.acceptance.fade()

    def choose(self, context: int, draft: Draft) -> int:
        """How many of the draft's tokens to verify in the next step; what is not verified is scored as a shadow."""
        self._last = self._weigh(context, draft.kind, len(draft.tokens))
        if not self._last.k:
            self._shadows.start(draft.kind, draft.tokens)
        return self._last.k

    def _weigh(self, context: int, kind: str, available: int) -> _Choice:
        plain = self.costs.plain(context)
        if not self.costs.widths or plain is None:
            return _Choice(why="costs are not calibrated yet")
        if not available:
            return _Choice(why="nothing to draft")
        if self._refresh_left > 0:
            self._refresh_left -= 1
            return _Choice(why="measuring plain steps again")
        if self._credit < 0:
            return _Choice(why="the loss ledger is spent")
        caution, bar = (0.0, LEAVE) if self._is_speculating else (CAUTION, ENTER)
        expected = self.acceptance.expected(kind, min(available, self.widest), caution=caution)
        best = _Choice(why="no draft length pays", gain=0.0)
        for k in self.costs.widths:
            seconds = self.costs.cycle(k, context) if k < len(expected) else None
            if seconds and (gain := expected[k] * plain / seconds) > best.gain:
                best = _Choice(k, gain, "drafting pays")
        if best.gain >= bar:
            self._is_speculating = True
            return best
        self._is_speculating = False
        return _Choice(0, best.gain, "no draft length pays")

    def step_ended(self, context: int, tokens: tuple[int, ...], seconds: float) -> None:
        """A plain step gave `tokens` in `seconds`."""
        self._shadows.arrive(tokens)
        self._plain_run += 1
        if self._plain_run > UNSTEADY_STEPS:
            self.costs.observe(0, context, seconds)
        if self._plain_run >= REFRESH_STEPS:
            self._cycles_since_plain = 0
        self._earn(context, LOSS_SHARE * seconds)

    def cycle_ended(self, context: int, draft: Draft, accepted: int, tokens: tuple[int, ...], seconds: float) -> None:
        """A cycle verified `draft`, whose first `accepted` tokens were right, and gave `tokens` in `seconds`."""
        self._shadows.arrive(tokens)
        self._plain_run = 0
        self._cycles_since_plain += 1
        patience = REFRESH_CYCLES * (4 if self._last.gain >= 1.5 else 1)
        if self._cycles_since_plain >= patience:
            self._cycles_since_plain, self._refresh_left = 0, REFRESH_STEPS
        self.acceptance.observe(draft.kind, len(draft.tokens), accepted)
        self.costs.observe(len(draft.tokens), context, seconds)
        plain = self.costs.plain(context) or 0.0
        self._earn(context, len(tokens) * plain - (1 - LOSS_SHARE) * seconds)

    def sequence_ended(self) -> None:
        """The shadows of this sequence will never be resolved any further."""
        self._shadows.end()

    def _earn(self, context: int, seconds: float) -> None:
        dearest = max((self.costs.cycle(k, context) or 0.0 for k in self.costs.widths), default=0.0)
        self._credit = min(self._credit + seconds, CREDIT_CYCLES * dearest)

    def snapshot(self) -> dict[str, Any]:
        """The last choice with its reason, and what it was weighed by; for /stats."""
        return {
            "k": self._last.k,
            "why": self._last.why,
            "expected_gain": round(self._last.gain, 3),
            "credit_ms": round(self._credit * 1000, 1),
            "cost_ms": self.costs.table(),
        }
