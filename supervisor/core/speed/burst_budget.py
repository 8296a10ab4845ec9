"""What bursts may cost: a share of lane time that can be saved up, and so many to a number of probes.

A burst that led to a conviction was worth it and is paid back.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from supervisor.core.numbers import is_number

SAVED_FOR_S = 3600.0
"""A lane that needed no bursts has saved up the budget of this long."""

MOST_BURSTS = 60
PROBES_THAT_EARN_THEM = 288
"""Sixty bursts a day, where a lane is probed every five minutes."""


class BurstBudget:
    """``share`` is of lane time, as configured, ``every_s`` the time between probes; times are monotonic seconds."""

    def __init__(self, share: float, every_s: float) -> None:
        self.share, self.every_s = share, every_s
        """May be set anew at any time."""
        self._savings_s = share * SAVED_FOR_S
        self._left = float(MOST_BURSTS)
        self._at: float | None = None
        self._owed_s = 0.0
        self._owed_bursts = 0

    def _pass_time(self, at: float) -> None:
        passed = 0.0 if self._at is None else max(at - self._at, 0.0)
        self._at = at
        self._savings_s = min(self._savings_s + self.share * passed, self.share * SAVED_FOR_S)
        earned = MOST_BURSTS / PROBES_THAT_EARN_THEM * passed / self.every_s
        self._left = min(self._left + earned, float(MOST_BURSTS))

    def to_json(self) -> dict[str, float]:
        """What outlives the daemon; while it is down nothing is saved up."""
        return {"savings_s": self._savings_s, "left": self._left}

    def restore(self, document: Mapping[str, Any]) -> None:
        """Take up what ``to_json`` gave; what cannot be read, and what is more than can be had, is left out."""
        savings_s, left = document.get("savings_s"), document.get("left")
        if is_number(savings_s):
            self._savings_s = min(float(savings_s), self._savings_s)
        if is_number(left):
            self._left = min(max(float(left), 0.0), self._left)

    def can_afford(self, at: float) -> bool:
        """Whether another burst may begin."""
        self._pass_time(at)
        return self._savings_s > 0 and self._left >= 1

    def begun(self) -> None:
        """A burst begins."""
        self._left -= 1
        self._owed_bursts += 1

    def spent(self, took_s: float) -> None:
        """A run of a burst came back."""
        self._savings_s -= took_s
        self._owed_s += took_s

    def cleared(self) -> None:
        """The suspicion that the last bursts were for is lifted: they stay paid for."""
        self._owed_s, self._owed_bursts = 0.0, 0

    def pay_back(self) -> None:
        """The last bursts led to a conviction."""
        self._savings_s += self._owed_s
        self._left += self._owed_bursts
        self.cleared()
