"""Whether all lanes of a machine fell together: then it is the machine, for workers do not age in the same minute.

One lane that still runs as before is proof of the contrary. And two workers may have aged in the same minutes after
all, so a common fall excuses for half an hour only; after that one of them is replaced, and that will tell.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from statistics import median

FELL = 0.20
"""From this fall of every lane on (logarithm) it is the machine's..."""

IS_BACK = 0.10
"""...until one of them is back up to this."""

EXCUSES_FOR_S = 1800.0
LEVEL_RUNS = 40
"""Long enough that the burst of a lane that is first to notice is not taken for its level."""

LEVEL_FROM = 5
RECENT_RUNS = 3


@dataclass
class _Lane:
    levels: dict[int, deque[float]] = field(default_factory=dict)
    """Log rates of the last runs by prompt size, those of a common fall excepted."""
    falls: deque[float] = field(default_factory=lambda: deque(maxlen=RECENT_RUNS))
    fresh_until: float = 0.0


class CommonFall:
    """The lanes of one machine. Times are monotonic seconds."""

    def __init__(self) -> None:
        self._lanes: dict[str, _Lane] = {}
        self._since: float | None = None
        self._is_spent = False

    def note(self, name: str, at: float, size: int, rate_log: float, fresh_for_s: float) -> None:
        """A lane has run; ``fresh_for_s``: for how long that tells how it is doing."""
        lane = self._lanes.setdefault(name, _Lane())
        level = lane.levels.setdefault(size, deque(maxlen=LEVEL_RUNS))
        if len(level) >= LEVEL_FROM:
            lane.falls.append(median(level) - rate_log)
            lane.fresh_until = at + fresh_for_s
        self._look(at)
        if self._since is None:
            level.append(rate_log)

    def leave(self, name: str) -> None:
        """A lane is gone."""
        self._lanes.pop(name, None)

    def depth(self, at: float) -> float:
        """By how much all lanes have fallen (logarithm); 0 while they have not."""
        self._look(at)
        return 0.0 if self._since is None else self._least(at)

    @property
    def lanes(self) -> int:
        """How many have been measured."""
        return sum(bool(lane.falls) for lane in self._lanes.values())

    def _look(self, at: float) -> None:
        least = self._least(at)
        if least <= IS_BACK:
            self._since, self._is_spent = None, False
        elif self._since is None:
            self._since = at if least > FELL and not self._is_spent else None
        elif at - self._since > EXCUSES_FOR_S:
            self._since, self._is_spent = None, True

    def _least(self, at: float) -> float:
        """The fall of the lane that fell least; 0 unless at least two tell."""
        fresh = [lane for lane in self._lanes.values() if len(lane.falls) == RECENT_RUNS and at <= lane.fresh_until]
        return min(median(lane.falls) for lane in fresh) if len(fresh) > 1 else 0.0
