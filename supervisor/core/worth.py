"""Whether replacing a slow worker pays: the marginal-value rule.

A life's mean yield is the work it has done, in seconds of a fresh worker, over its age and the cost of replacing it.
While the worker still yields more than that, each further minute raises the mean, and replacing it loses work.
"""

from __future__ import annotations


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

    def objection(self, cost_s: float) -> str | None:
        """Why not, in words."""
        if self.is_worth_it(cost_s):
            return None
        return (
            f"not worth it yet: it does {self.ratio:.0%} of a fresh worker's work, "
            f"and replacing it costs {cost_s:.0f} s of service"
        )
