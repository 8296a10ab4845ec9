"""How often a lane may be helped: crash back-off, the budget of recycles, and holding off when they bring nothing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from supervisor.core.recycle.replacement import FOR_SLOWNESS
from supervisor.core.terms import RecycleTerms, Replace, Trigger

CRASH_WINDOW_S = 600.0
CRASH_LIMIT = 5
FIRST_BACK_OFF_S = 1.0
LONGEST_BACK_OFF_S = 300.0

HOUR_S = 3600.0
DAY_S = 86400.0
FIRST_HOLD_OFF_S = 1800.0
LONGEST_HOLD_OFF_S = DAY_S
FUTILE_THAT_ANCHOR = 3


@dataclass
class CrashHistory:
    """Unplanned deaths. A lane that dies five times in ten minutes waits for a person.

    The delay before a new start is 1 s, doubled by each crash of the last ten minutes, at most 300 s.
    """

    _crashes: list[tuple[float, int]] = field(default_factory=list)

    def add(self, at: float, generation: int) -> None:
        """Count the death of ``generation``."""
        self._crashes.append((at, generation))

    def forgive(self, generations: Iterable[int]) -> None:
        """Take back the deaths of these generations: a poison request, not the worker, was to blame."""
        forgiven = set(generations)
        self._crashes = [crash for crash in self._crashes if crash[1] not in forgiven]

    def clear(self) -> None:
        """A person started the lane: it gets all its tries again."""
        self._crashes.clear()

    def recent(self, at: float) -> int:
        """How many crashes lie within the last ten minutes."""
        self._crashes = [crash for crash in self._crashes if at - crash[0] <= CRASH_WINDOW_S]
        return len(self._crashes)

    def is_loop(self, at: float) -> bool:
        """Whether another start would only be the next turn of a loop."""
        return self.recent(at) >= CRASH_LIMIT

    def delay_s(self, at: float) -> float:
        """Seconds to wait before the next start."""
        doublings = max(self.recent(at) - 1, 0)
        return min(FIRST_BACK_OFF_S * 2.0**doublings, LONGEST_BACK_OFF_S)


@dataclass
class RecycleAllowance:
    """Whether a recycle that the lane itself thinks of may happen now, and if not, in plain words why not."""

    _begun: list[float] = field(default_factory=list)
    _hold_off_until: float = 0.0
    _futile_in_a_row: int = 0
    _retry_at: float = 0.0

    def begun(self, at: float) -> None:
        """A recycle began. (Overlapped ones count too, though the limits do not bind them.)"""
        self._begun = [*(begun for begun in self._begun if at - begun <= DAY_S), at]

    def brought_nothing(self, at: float) -> float:
        """A recycle was futile or only partial: hold off 30 min, doubled each time, up to a day.

        Returns the seconds.
        """
        length = min(FIRST_HOLD_OFF_S * 2.0**self._futile_in_a_row, LONGEST_HOLD_OFF_S)
        self._futile_in_a_row += 1
        self._hold_off_until = at + length
        return length

    @property
    def is_time_to_anchor(self) -> bool:
        """Whether so many in a row brought nothing that the machine must have changed."""
        return self._futile_in_a_row > 0 and self._futile_in_a_row % FUTILE_THAT_ANCHOR == 0

    def cured(self) -> None:
        """A recycle helped: the next futile one starts from the shortest hold-off again."""
        self._futile_in_a_row = 0
        self._hold_off_until = 0.0

    def try_again_at(self, at: float) -> None:
        """A recycle was aborted for want of a quiet moment: not before this time again."""
        self._retry_at = at

    def is_held_off(self, at: float) -> bool:
        """Whether the last ones brought nothing, and it is too early for the next."""
        return at < self._hold_off_until

    def may_try_again(self, at: float) -> bool:
        """Whether the pause after an aborted try is over."""
        return at >= self._retry_at

    def objection(
        self,
        at: float,
        terms: RecycleTerms,
        *,
        replace: Replace,
        uptime_s: float,
        is_window_open: bool,
        trigger: Trigger = Trigger.DEGRADED,
    ) -> str | None:
        """Why a recycle may not begin now; None if it may.

        A worker that is too big can wait neither for its age nor for quiet hours.
        """
        can_wait = trigger is not Trigger.MEMORY
        refusals = (
            (terms.is_off, "recycling is off"),
            (terms.is_advised_only, "recycle.mode is advise: a person decides"),
            (
                can_wait and uptime_s < terms.min_uptime_s,
                f"the worker is younger than min_uptime ({terms.min_uptime_s:.0f} s)",
            ),
            (
                trigger in FOR_SLOWNESS and at < self._hold_off_until,
                f"held off for {self._hold_off_until - at:.0f} s more: the last one did not help",
            ),
            (
                can_wait and at < self._retry_at,
                f"the last try found no quiet moment; next in {self._retry_at - at:.0f} s",
            ),
            (can_wait and not is_window_open, "outside the quiet hours of recycle.window"),
        )
        for is_refused, words in refusals:
            if is_refused:
                return words
        return None if replace is Replace.OVERLAP else self._spent(at, terms)

    def _spent(self, at: float, terms: RecycleTerms) -> str | None:
        last_hour = sum(at - begun <= HOUR_S for begun in self._begun)
        if last_hour >= terms.max_per_hour:
            return f"budget spent: {last_hour} recycles within the hour (max_per_hour)"
        last_day = sum(at - begun <= DAY_S for begun in self._begun)
        if last_day >= terms.max_per_day:
            return f"budget spent: {last_day} recycles within the day (max_per_day)"
        return None

    def to_json(self, at: float) -> dict[str, Any]:
        """State that outlives the daemon, in seconds relative to ``at``: monotonic times mean nothing to the
        next one.
        """
        return {
            "begun_ago_s": [at - begun for begun in self._begun],
            "hold_off_left_s": max(self._hold_off_until - at, 0.0),
            "futile_in_a_row": self._futile_in_a_row,
        }

    @classmethod
    def from_json(cls, state: dict[str, Any], at: float, gone_s: float) -> RecycleAllowance:
        """``gone_s``: wall-clock seconds since the state was written."""
        return cls(
            _begun=[at - gone_s - ago for ago in state.get("begun_ago_s", [])],
            _hold_off_until=at + max(state.get("hold_off_left_s", 0.0) - gone_s, 0.0),
            _futile_in_a_row=int(state.get("futile_in_a_row", 0)),
        )
