"""Bursts: a few canary runs back to back, paid out of a budget of their own."""

from __future__ import annotations

from supervisor.core.samples import Purpose, Sample

SAVED_FOR_S = 3600.0
"""A lane that needed no bursts has saved up the budget of this long."""


class Bursts:
    """The burst under way, if there is one, and what may still be spent. ``share``: of lane time, as configured."""

    def __init__(self, share: float) -> None:
        self.left = 0
        """Runs still wanted."""
        self.size: int | None = None
        """The prompt size they are to have."""
        self._savings_s = share * SAVED_FOR_S
        self._saved_at: float | None = None

    @property
    def can_afford(self) -> bool:
        """Whether another may begin."""
        return self._savings_s > 0

    def stop(self) -> None:
        """What is under way is not wanted any more."""
        self.left = 0

    def ask(self, size: int, runs: int) -> None:
        """Want so many runs now, if they can be afforded."""
        self.left = runs if self.can_afford else 0
        self.size = size

    def took(self, sample: Sample, share: float) -> bool:
        """A run came back, and is paid for if it was one of a burst; whether a burst ended with it."""
        passed = 0.0 if self._saved_at is None else max(sample.at - self._saved_at, 0.0)
        self._saved_at = sample.at
        self._savings_s = min(self._savings_s + share * passed, share * SAVED_FOR_S)
        is_burst = sample.purpose is Purpose.BURST
        self._savings_s -= sample.took_s if is_burst else 0.0
        if not is_burst or sample.prompt_tokens != self.size:
            self.left = 0
            return False
        self.left = max(self.left - 1, 0)
        return self.left == 0
