"""The time that speculation has lost against plain decoding, kept within a bound. Pure."""

from __future__ import annotations

SHARE = 0.01
"""Of the time decoded, this much may be lost."""
WON_CYCLES = 2.0
"""Time won in a sequence pays for at most so many lost cycles later in it."""


class Ledger:
    """Seconds owed to plain decoding: at most one cycle, beyond a hundredth of all time decoded.

    What a sequence wins may be lost again within it, up to WON_CYCLES; the next sequence starts with nothing won.
    """

    def __init__(self) -> None:
        self.owed = 0.0

    def affords(self, cycle: float, plain: float, dearest: float) -> bool:
        """Whether a cycle of `cycle` seconds may be tried, if all it gives is the token of one plain step."""
        return self.owed + cycle - plain <= dearest

    def settle(self, seconds: float, plain: float, dearest: float) -> None:
        """`seconds` went by for what plain decoding gives in `plain`; `dearest` is the seconds of the widest cycle."""
        self.owed = max(self.owed + (1 - SHARE) * seconds - plain, -WON_CYCLES * dearest)

    def begin(self) -> None:
        """A new sequence: debts stay, credit does not."""
        self.owed = max(self.owed, 0.0)
