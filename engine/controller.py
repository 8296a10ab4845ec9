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
from engine.proposals import Order
from engine.shadowing import Shadowing

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
        self._speculating: set[bool] = set()
        """Which drafts are being verified: those that cost time (True), free ones (False)."""
        self._shadowing = Shadowing()
        self._forgiven_s = 0.0
        self._cycles_since_plain = 0
        self._plain_run = 0
        self._refresh_left = 0
        self._is_refreshing = False
        self._ledger = Ledger()
        self._last = _Choice()

    def sequence_began(self) -> None:
        """New content: speculation has to prove itself again, and what was won before pays for nothing."""
        self._speculating.clear()
        self._shadowing.sequence_began()
        self._ledger.begin()
        self.acceptance.fade()

    def choose(self, context: int, draft: Draft) -> int:
        """How many of the draft's tokens to verify in the next step; what is not verified is scored as a shadow."""
        self._last = self._weigh(context, draft.kind, len(draft.tokens), is_paid=False)
        if not self._last.k:
            self._shadows.start(draft.kind, draft.tokens)
        return self._last.k

    def order(self, context: int, kind: str, limit: int) -> Order:
        """What the paid drafter is to guess, after `choose` has said what a free draft is worth."""
        if limit <= 0 or self._is_refreshing or not self._shadowing.is_awake:
            return Order()
        choice = self._weigh(context, kind, limit, is_paid=True)
        if choice.k and choice.gain > (self._last.gain if self._last.k else 0.0):
            self._last = choice
            return Order(choice.k)
        if self._last.k:
            return Order()
        self._last.why = choice.why
        return Order(self._shadow_width(context, limit), is_shadow=True)

    def shadow_drafted(self, draft: Draft, seconds: float) -> None:
        """A shadow of the paid drafter took `seconds`; without tokens it has only taken in more of the text.

        That is no loss of speculation's: like feeding the prompt, it is done once a sequence. Shadowing bounds it.
        """
        if not draft.tokens:
            self._forgiven_s = seconds
            self._shadowing.caught_up()
            return
        self._shadowing.drafted()
        self._shadows.start(draft.kind, draft.tokens)
        self.costs.observe_drafting(len(draft.tokens), seconds)

    def _shadow_width(self, context: int, limit: int) -> int:
        """How many tokens a shadow is to guess now; mostly 0. The ledger pays for it as for a lost cycle."""
        plain = self.costs.plain(context)
        width = max((k for k in self.costs.widths if k <= limit and self.costs.drafting(k) is not None), default=0)
        drafting = self.costs.drafting(width)
        if not width or plain is None or drafting is None or not self._shadowing.is_due(drafting / plain):
            return 0
        return width if self._ledger.affords(drafting + plain, plain, self._dearest(context)) else 0

    def _weigh(self, context: int, kind: str, available: int, *, is_paid: bool) -> _Choice:
        plain = self.costs.plain(context)
        if not self.costs.widths or plain is None:
            return _Choice(why="costs are not calibrated yet")
        if self._refresh_left > 0 and not is_paid:
            self._refresh_left -= 1
            self._is_refreshing = True
            return _Choice(why="measuring plain steps again")
        self._is_refreshing = False
        if not available:
            return _Choice(why="nothing to draft")
        is_speculating = is_paid in self._speculating
        caution, bar = (0.0, LEAVE) if is_speculating else (CAUTION, ENTER)
        expected = self.acceptance.expected(kind, min(available, self.widest), caution=caution)
        cycles = self._cycles(context, len(expected), is_paid=is_paid)
        gains = {k: expected[k] * plain / seconds for k, seconds in cycles.items()}
        best = max(gains, key=gains.__getitem__, default=0)
        if gains.get(best, 0.0) < bar:
            self._speculating.discard(is_paid)
            return _Choice(0, gains.get(best, 0.0), "no draft length pays")
        self._speculating.add(is_paid)
        dearest = self._dearest(context)
        paying = [k for k in gains if gains[k] >= bar and self._ledger.affords(cycles[k], plain, dearest)]
        if not paying:
            return _Choice(0, gains[best], "too much time was lost lately")
        best = max(paying, key=gains.__getitem__)
        return _Choice(best, gains[best], "drafting pays")

    def _cycles(self, context: int, below: int, *, is_paid: bool) -> dict[int, float]:
        """Seconds of a cycle for each measured draft length under `below`, drafting included."""
        cycles = {}
        for k in (k for k in self.costs.widths if k < below):
            drafting = self.costs.drafting(k) if is_paid else 0.0
            verifying = self.costs.cycle(k, context)
            if drafting is not None and verifying:
                cycles[k] = drafting + verifying
        return cycles

    def step_ended(self, context: int, tokens: tuple[int, ...], seconds: float, *, paid_s: float = 0.0) -> None:
        """A plain step gave `tokens` in `seconds`, of which a shadow took `paid_s`."""
        self._shadows.arrive(tokens)
        self._shadowing.stepped()
        if paid_s:
            # The device did both at once: such a step, and the next ones, say nothing of a plain one.
            self._plain_run = 0
            forgiven, self._forgiven_s = self._forgiven_s, 0.0
            own = max(0.0, seconds - paid_s)
            self._ledger.settle(own + paid_s - forgiven, own, self._dearest(context))
            return
        self._plain_run += 1
        if self._plain_run > UNSTEADY_STEPS:
            self.costs.observe(0, context, seconds)
        if self._plain_run >= REFRESH_STEPS:
            self._cycles_since_plain = 0
        self._ledger.settle(seconds, seconds, self._dearest(context))

    def cycle_ended(
        self,
        context: int,
        draft: Draft,
        accepted: int,
        tokens: tuple[int, ...],
        seconds: float,
        *,
        paid_s: float = 0.0,
    ) -> None:
        """A cycle verified `draft`, whose first `accepted` tokens were right, and gave `tokens` in `seconds`.

        Drafting took `paid_s` of them.
        """
        self._shadows.arrive(tokens)
        self._plain_run = 0
        self._cycles_since_plain += 1
        patience = REFRESH_CYCLES * (4 if self._last.gain >= 1.5 else 1)
        if self._cycles_since_plain >= patience:
            self._cycles_since_plain, self._refresh_left = 0, REFRESH_STEPS
        self.acceptance.observe(draft.kind, len(draft.tokens), accepted)
        self.costs.observe(len(draft.tokens), context, seconds - paid_s)
        if paid_s:
            self._shadowing.paid_off()
            self.costs.observe_drafting(len(draft.tokens), paid_s)
        plain = self.costs.plain(context) or 0.0
        self._ledger.settle(seconds, len(tokens) * plain, self._dearest(context))

    def sequence_ended(self) -> None:
        """The shadows of this sequence will never be resolved any further."""
        self._shadows.end()
        self._shadowing.sequence_ended()

    def _dearest(self, context: int) -> float:
        return max(
            ((self.costs.cycle(k, context) or 0.0) + (self.costs.drafting(k) or 0.0) for k in self.costs.widths),
            default=0.0,
        )

    def snapshot(self) -> dict[str, Any]:
        """The last choice with its reason, and what it was weighed by; for /stats."""
        return {
            "k": self._last.k,
            "why": self._last.why,
            "expected_gain": round(self._last.gain, 3),
            "owed_ms": round(self._ledger.owed * 1000, 1),
            "cost_ms": self.costs.table(),
            "draft_ms": self.costs.drafting_table(),
        }
