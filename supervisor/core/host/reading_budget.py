"""What readings of the machine may cost: a share of lane time, which can be saved up for a burst of runs."""

from __future__ import annotations

OF_CANARIES = 0.1
"""Of what canaries may cost; by default 0.1 % of the lane's time."""

SAVED_FOR_S = 3600.0


class ReadingBudget:
    """Times are monotonic seconds."""

    def __init__(self) -> None:
        self._savings_s: float | None = None
        self._at = 0.0

    def can_afford(self, at: float, canary_share: float) -> bool:
        """Whether another reading may be taken; ``canary_share``: ``canary.budget``."""
        share = OF_CANARIES * canary_share
        saved = share * SAVED_FOR_S if self._savings_s is None else self._savings_s + share * max(at - self._at, 0.0)
        self._savings_s, self._at = min(saved, share * SAVED_FOR_S), at
        return self._savings_s > 0

    def spent(self, took_s: float) -> None:
        """A reading took so long."""
        self._savings_s = (self._savings_s or 0.0) - took_s
