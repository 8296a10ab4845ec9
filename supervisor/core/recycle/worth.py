"""Whether replacing a slow worker pays: the marginal-value rule.

A life's mean yield is the work it has done, in seconds of a fresh worker, over its age and the cost of replacing it.
While the worker still yields more than that, each further minute raises the mean, and replacing it loses work.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from statistics import median
from typing import Any

from supervisor.core.account.record import RecycleRecord
from supervisor.core.words import share

HOUR_S = 3600.0
REMEMBERED = 5
"""Recycles whose cost tells what the next one will take."""


class RecycleCost:
    """What a recycle in place took this lane, by its records: held, down, and prompts to be read again."""

    def __init__(self) -> None:
        self._unserved_s: deque[float] = deque(maxlen=REMEMBERED)
        self._lost_tokens: deque[int] = deque(maxlen=REMEMBERED)

    def took(self, record: RecycleRecord) -> None:
        """One is done: the gate was held for the drain, then there was no worker until the new one had warmed up."""
        self._unserved_s.append(record.drain.waited_s + record.downtime_s)

    def lost(self, prefix_tokens: int) -> None:
        """So many tokens of its prefix cache did not come over."""
        self._lost_tokens.append(prefix_tokens)

    def seconds(self, start_took_s: float, prefill_tok_s: float | None) -> float:
        """Seconds of service that the next one will cost; before there was one, what the last start took."""
        unserved_s = median(self._unserved_s) if self._unserved_s else start_took_s
        reread = median(self._lost_tokens) / prefill_tok_s if self._lost_tokens and prefill_tok_s else 0.0
        return unserved_s + reread

    def to_json(self) -> dict[str, Any]:
        """What outlives the daemon."""
        return {"unserved_s": list(self._unserved_s), "lost_tokens": list(self._lost_tokens)}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> RecycleCost:
        """What ``to_json`` gave."""
        cost = cls()
        cost._unserved_s.extend(float(seconds) for seconds in document.get("unserved_s", ()))
        cost._lost_tokens.extend(int(tokens) for tokens in document.get("lost_tokens", ()))
        return cost


class Worth:
    """The work of one life. Ages and costs are seconds; ``ratio`` is the worker's rate over a fresh one's."""

    def __init__(self, generation: int = 0) -> None:
        self.generation = generation
        self.work_s = 0.0
        self.age_s = 0.0
        self.ratio = 1.0

    def measured(self, age_s: float, ratio: float) -> None:
        """The worker was measured at this age; since the last time its rate is taken to have changed evenly."""
        passed = max(age_s - self.age_s, 0.0)
        self.work_s += passed * (self.ratio + ratio) / 2
        self.age_s, self.ratio = max(age_s, self.age_s), ratio

    def is_worth_it(self, cost_s: float) -> bool:
        """Whether a new worker is worth the seconds of service that it takes to get it."""
        return self.ratio < 1.0 and self.ratio * (self.age_s + cost_s) < self.work_s

    @property
    def lost_s(self) -> float:
        """Seconds of a fresh worker's work that this life has not done."""
        return max(self.age_s - self.work_s, 0.0)

    def advice(self, cost_s: float, fresh_tok_s: float | None) -> str:
        """What a person is told who decides: what waiting has cost, what it costs, and what a recycle would."""
        lost, rate = self.lost_s, 1.0 - self.ratio
        words = f"a new worker would have done {lost:.0f} s more of work by now"
        if fresh_tok_s:
            words += (
                f" (up to {lost * fresh_tok_s:,.0f} tokens), "
                f"and each hour of waiting costs up to {rate * HOUR_S * fresh_tok_s:,.0f} more"
            )
        return f"{words}; a recycle costs {cost_s:.0f} s of service"

    def objection(self, cost_s: float) -> str | None:
        """Why not, in words."""
        if self.is_worth_it(cost_s):
            return None
        return (
            f"not worth it yet: it does {share(self.ratio)} of a fresh worker's work, "
            f"and replacing it costs {cost_s:.0f} s of service"
        )
