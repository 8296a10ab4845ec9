"""The age at which a lane's workers are best replaced, learned from how its earlier ones slowed down.

Each life adds what its runs were of a fresh worker's speed, by age, and whether it ended because the worker was found
slow. A life that ended otherwise tells nothing of later ages. From both follows what lives yield if each ends at a
given age, or before, when it is found slow: their mean work over their mean length and the cost of replacing them. The
best age has the highest yield, if that is clearly more than finding slow workers yields alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from supervisor.core.numbers import is_number

LIVES_THAT_TEACH = 3
LIVES_TO_A_LONE_ONE = 8
"""Of so many lives one is left alone, so that it is still seen what becomes of old workers."""

LIVES_KEPT = 32
GROWTH = 1.15
STEPS = 64
"""Ages are told apart in steps as long as the time between probes, later by so much longer each; about three weeks."""

LEAST_GAIN = 0.01
FASTEST = 1.25
"""No run counts as faster than this, over a fresh one's speed."""

DIGITS = 3


@dataclass(frozen=True, slots=True)
class Life:
    """Mean speed in each step of its age, as a share of fresh, and whether it ended because it was slow."""

    ratios: tuple[float, ...]
    is_slow: bool


class AgeCurve:
    """Learned over the lives of a lane's workers. Ages and costs are seconds, ``step_s`` the time between probes."""

    def __init__(self, step_s: float) -> None:
        self.step_s = step_s
        self._lives: list[Life] = []
        self._runs: list[tuple[float, float]] = []
        """Age and speed of this life's runs."""
        self._since_lone = 0
        """Lives since one was left alone, of those that had a best age."""

    # ---- taking lives in ----

    def measured(self, age_s: float, ratio: float) -> None:
        """A run at this age, and its speed over a fresh worker's."""
        if len(self._runs) < _MOST_RUNS:
            self._runs.append((age_s, min(ratio, FASTEST)))

    def life_ended(self, age_s: float, *, is_slow: bool) -> None:
        """At this age; ``is_slow``: it was replaced for being slow."""
        runs, self._runs = self._runs, []
        if len(self._lives) >= LIVES_THAT_TEACH:
            self._since_lone = (self._since_lone + 1) % LIVES_TO_A_LONE_ONE
        if not runs:
            return
        ratios: list[float] = []
        for begin, end in _steps(self.step_s):
            if begin >= age_s and ratios:
                break
            there = [ratio for age, ratio in runs if begin <= age < end]
            before = ratios[-1] if ratios else 1.0
            ratios.append(round(sum(there) / len(there), DIGITS) if there else before)
        self._lives = [*self._lives, Life(tuple(ratios), is_slow)][-LIVES_KEPT:]

    # ---- what they say ----

    @property
    def lives(self) -> int:
        """Whose ageing is known."""
        return len(self._lives)

    @property
    def is_left_alone(self) -> bool:
        """Whether the worker of now is the one that shows what becomes of old ones."""
        return self._since_lone == LIVES_TO_A_LONE_ONE - 1

    def best_age_s(self, cost_s: float, least_s: float = 0.0) -> float | None:
        """At which a worker is best replaced; None if too few lives tell, or finding slow ones yields as much."""
        best, highest, last = None, 0.0, 0.0
        for age_s, work_s, length_s in self._yields():
            last = work_s / (length_s + cost_s)
            if age_s >= least_s and last > highest:
                best, highest = age_s, last
        return best if highest > last * (1 + LEAST_GAIN) else None

    def _yields(self) -> Iterator[tuple[float, float, float]]:
        """Age, and the mean work and length of lives that end there or before: as far as enough lives tell."""
        work_s = length_s = 0.0
        share = 1.0
        """Of lives, that are not found slow before."""
        for index, (begin, end) in enumerate(_steps(self.step_s)):
            there = [life for life in self._lives if len(life.ratios) > index]
            if len(there) < LIVES_THAT_TEACH:
                return
            found = sum(life.is_slow and len(life.ratios) == index + 1 for life in there) / len(there)
            lived_s = (end - begin) * share * (1 - found / 2)
            work_s += lived_s * sum(life.ratios[index] for life in there) / len(there)
            length_s += lived_s
            share *= 1 - found
            yield end, work_s, length_s

    # ---- outliving the daemon ----

    def to_json(self) -> dict[str, Any]:
        """All but the life of now, as JSON values."""
        lives = [{"ratios": list(life.ratios), "is_slow": life.is_slow} for life in self._lives]
        return {"step_s": self.step_s, "since_lone": self._since_lone, "lives": lives}

    @classmethod
    def from_json(cls, document: Mapping[str, Any], step_s: float) -> AgeCurve:
        """What ``to_json`` gave; nothing where ages were told apart otherwise, and no life that cannot be read."""
        curve = cls(step_s)
        lives, since_lone = document.get("lives"), document.get("since_lone")
        if document.get("step_s") == step_s and isinstance(lives, list):
            curve._lives = [life for each in lives if (life := _life(each)) is not None][-LIVES_KEPT:]
            curve._since_lone = since_lone % LIVES_TO_A_LONE_ONE if isinstance(since_lone, int) else 0
        return curve


_MOST_RUNS = 10_000


def _life(value: object) -> Life | None:
    if not isinstance(value, Mapping):
        return None
    ratios = value.get("ratios")
    if not isinstance(ratios, Sequence) or not ratios or isinstance(ratios, str):
        return None
    if not all(is_number(each) and each >= 0 for each in ratios):
        return None
    return Life(tuple(float(each) for each in ratios)[:STEPS], value.get("is_slow") is True)


def _steps(step_s: float) -> Iterator[tuple[float, float]]:
    begin = 0.0
    for _ in range(STEPS):
        end = max(begin + step_s, begin * GROWTH)
        yield begin, end
        begin = end
