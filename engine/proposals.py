"""What to verify next: the draft that costs nothing, or the one that costs time where it pays."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from engine.drafters import Draft, Drafter, PaidDrafter


@dataclass(frozen=True)
class Order:
    """How many tokens the paid drafter is to guess; a shadow is only compared with what plain decoding then gives."""

    k: int = 0
    is_shadow: bool = False


class DraftPolicy(Protocol):
    """The part of a policy that decides what is drafted."""

    @property
    def widest(self) -> int:
        """The longest draft worth proposing."""

    def choose(self, context: int, draft: Draft) -> int:
        """How many of a free draft's tokens to verify in the next step."""

    def order(self, context: int, kind: str, limit: int) -> Order:
        """What to have guessed by the paid drafter `kind`, after `choose`; it wins over the free draft."""

    def shadow_drafted(self, draft: Draft, seconds: float) -> None:
        """The paid drafter took `seconds` for what nobody verifies: a shadow, or, if empty, catching up."""


@dataclass(frozen=True)
class Proposal:
    """What to verify, which may be empty. `wanted`: tokens that were to be verified, but a step is still under way.

    `paid_s`: the seconds that the paid drafter took.
    """

    draft: Draft
    wanted: int = 0
    paid_s: float = 0.0


class Proposer:
    """Two drafters on one sequence."""

    def __init__(
        self,
        free: Drafter,
        paid: PaidDrafter | None,
        policy: DraftPolicy,
        *,
        permitted: Callable[[Draft], Draft] = lambda draft: draft,
        longest: int | None = None,
    ) -> None:
        """`permitted` cuts a free draft where it breaks the sequence's grammar. A paid one is verified as it is, for
        only its whole width has been measured; what breaks the grammar is never chosen."""
        self._permitted = permitted
        self._longest = longest
        self._free = free
        self._paid = paid
        self._policy = policy

    def begin(self, tokens: list[int]) -> None:
        """Follow a new sequence."""
        for drafter in self._drafters():
            drafter.begin(tokens)

    def extend(self, tokens: list[int]) -> None:
        """It went on with `tokens`."""
        for drafter in self._drafters():
            drafter.extend(tokens)

    def propose(self, context: int, room: int, *, is_ahead: bool) -> Proposal:
        """What to verify with room for `room` tokens; `is_ahead`: a plain step is under way, so nothing can be now."""
        policy = self._policy
        limit = min(policy.widest, room - 1, policy.widest if self._longest is None else self._longest)
        free = self._permitted(self._free.propose(limit))
        k = policy.choose(context, free)
        free = Draft(free.tokens[:k], free.kind)
        if self._paid is None:
            return Proposal(free, k)
        order = policy.order(context, self._paid.method, min(limit, self._paid.longest))
        if not order.k:
            return Proposal(free, k)
        if is_ahead and not order.is_shadow:
            return Proposal(Draft(), order.k)
        began = time.monotonic()
        draft = self._paid.propose(order.k)
        seconds = time.monotonic() - began
        if draft.tokens and not order.is_shadow:
            return Proposal(draft, len(draft.tokens), seconds)
        policy.shadow_drafted(draft, seconds)
        return Proposal(Draft(), 0, seconds)

    def _drafters(self) -> tuple[Drafter, ...]:
        return (self._free,) if self._paid is None else (self._free, self._paid)
