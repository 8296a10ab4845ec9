"""When a drafter that costs time may guess without being verified, only to learn what it is worth now. Pure."""

from __future__ import annotations

SHARE = 0.005
"""Of plain decoding's time, shadows may take this much once they are no news."""
EAGER = 6
"""The first shadows of a sequence come as soon as the ledger affords them."""
EAGER_EVERY = 4
LONGEST_REST = 64


class Shadowing:
    """Counts steps between shadows, and lets a drafter that never pays rest for whole sequences.

    A long prompt costs such a drafter a catching-up. So after each sequence in which it had to and then did not pay it
    rests for twice as many as before, up to LONGEST_REST.
    """

    def __init__(self) -> None:
        self._steps = 0
        self._shadows = 0
        self._has_paid = False
        self._has_caught_up = False
        self._patience = 0
        self._rest = 0

    @property
    def is_awake(self) -> bool:
        """Whether the drafter may be asked at all in this sequence."""
        return not self._rest

    def sequence_began(self) -> None:
        """New content."""
        self._steps = EAGER_EVERY
        self._shadows = 0
        self._has_paid = False
        self._has_caught_up = False

    def is_due(self, steps_it_costs: float) -> bool:
        """Whether to guess now; `steps_it_costs`: the time of a shadow, in plain steps."""
        every = EAGER_EVERY if self._shadows < EAGER else max(EAGER_EVERY, steps_it_costs / SHARE)
        return self._steps >= every

    def stepped(self) -> None:
        """A plain step went by."""
        self._steps += 1

    def drafted(self) -> None:
        """A shadow was guessed."""
        self._steps = 0
        self._shadows += 1

    def caught_up(self) -> None:
        """Time went into taking in the text."""
        self._has_caught_up = True

    def paid_off(self) -> None:
        """A draft was verified: it was expected to pay."""
        self._has_paid = True

    def sequence_ended(self) -> None:
        """Rest, if nothing came of catching up."""
        if self._rest:
            self._rest -= 1
        elif self._has_paid:
            self._patience = 0
        elif self._has_caught_up:
            self._patience = min(LONGEST_REST, 2 * self._patience or 1)
            self._rest = self._patience
