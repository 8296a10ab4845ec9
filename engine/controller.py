"""How many tokens to draft now, where 0 is always an answer. Pure: time comes in as data, so a day can be replayed.

Plain decoding is the reference arm. A draft length is chosen when what it is expected to give, over what it costs,
beats a plain step: with a margin and a lower bound to begin, by the estimate to go on. A ledger bounds the
time that may be lost that way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from engine.acceptance import CAUTION, Acceptance, Shadows
from engine.costs import Costs
from engine.drafters import Draft
from engine.ledger import Ledger

ENTER = 1.03
LEAVE = 1.00
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
        self._ledger = Ledger()
        self._last = _Choice()

    def sequence_began(self) -> None:
        """New content: speculation has to prove itself again, and what was won before pays for nothing."""
        self._is_speculating = False
        self._ledger.begin()
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
        caution, bar = (0.0, LEAVE) if self._is_speculating else (CAUTION, ENTER)
        expected = self.acceptance.expected(kind, min(available, self.widest), caution=caution)
        cycles = {k: self.costs.cycle(k, context) or float("inf") for k in self.costs.widths if k < len(expected)}
        gains = {k: expected[k] * plain / seconds for k, seconds in cycles.items()}
        best = max(gains, key=gains.__getitem__, default=0)
        self._is_speculating = gains.get(best, 0.0) >= bar
        if not self._is_speculating:
            return _Choice(0, gains.get(best, 0.0), "no draft length pays")
        dearest = self._dearest(context)
        paying = [k for k in gains if gains[k] >= bar and self._ledger.affords(cycles[k], plain, dearest)]
        if not paying:
            return _Choice(0, gains[best], "too much time was lost lately")
        best = max(paying, key=gains.__getitem__)
        return _Choice(best, gains[best], "drafting pays")

    def step_ended(self, context: int, tokens: tuple[int, ...], seconds: float) -> None:
        """A plain step gave `tokens` in `seconds`."""
        self._shadows.arrive(tokens)
        self._plain_run += 1
        if self._plain_run > UNSTEADY_STEPS:
            self.costs.observe(0, context, seconds)
        if self._plain_run >= REFRESH_STEPS:
            self._cycles_since_plain = 0
        self._ledger.settle(seconds, seconds, self._dearest(context))

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
        self._ledger.settle(seconds, len(tokens) * plain, self._dearest(context))

    def sequence_ended(self) -> None:
        """The shadows of this sequence will never be resolved any further."""
        self._shadows.end()

    def _dearest(self, context: int) -> float:
        return max((self.costs.cycle(k, context) or 0.0 for k in self.costs.widths), default=0.0)

    def snapshot(self) -> dict[str, Any]:
        """The last choice with its reason, and what it was weighed by; for /stats."""
        return {
            "k": self._last.k,
            "why": self._last.why,
            "expected_gain": round(self._last.gain, 3),
            "owed_ms": round(self._ledger.owed * 1000, 1),
            "cost_ms": self.costs.table(),
        }
