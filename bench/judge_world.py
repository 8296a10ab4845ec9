"""What the judge is shown: how fast a worker really is, how the host is doing, and how single runs scatter."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

HOUR_S = 3600.0
DAY_S = 24 * HOUR_S
FRESH_TOK_S = 60.0
SIZES = (256, 1024, 3072)
OF_FRESH = {256: 1.0, 1024: 0.95, 3072: 0.85}
"""A long context costs a little speed, in a fresh worker too."""


class Slowness(Protocol):
    """Logarithm of how much slower than fresh a worker is, by its age and its number."""

    def __call__(self, age_s: float, worker: int) -> float: ...


Host = Callable[[float], float]
"""The same of the whole machine, by the time (s)."""


def never(age_s: float, worker: int) -> float:  # noqa: ARG001 - at any age, each of them
    """A worker that does not age."""
    return 0.0


def quiet(_at: float) -> float:
    """A machine that is always as fast."""
    return 0.0


@dataclass(frozen=True)
class World:
    """One lane's circumstances. ``sd``: of a run's log rate. Shares are of runs, or of whole visits."""

    slowness: Slowness = never
    host: Host = quiet
    sd: float = 0.14
    outliers: float = 0.03
    """Share of runs at half the rate."""
    slow_visits: float = 0.0
    """Share of visits wholly at half the rate."""
    shared: float = 0.0
    """Share of the variance that neighbouring visits have in common."""
    correlation: float = 0.0
    """Of that share, from one probe to the next."""
    slow_spawns: float = 0.0
    """Share of spawns that come up at ``slow_spawn`` of the others' rate."""
    slow_spawn: float = 26 / 33
    reference_sensitivity: float = 0.0
    """How much of the machine's slowness its own reference shows; 0: there is no reference."""
    start_s: float = 30.0
    """From the old worker's end to the new one's first run."""


@dataclass
class Weather:
    """The noise of one lane as time passes. ``every_s``: between probes."""

    world: World
    chance: random.Random
    every_s: float
    _shared: float = field(init=False)
    _at: float = 0.0
    _is_slow_visit: bool = False

    def __post_init__(self) -> None:
        self._shared = self.chance.gauss(0, 1)

    def visit(self, at: float) -> None:
        """A visit begins; its runs share what the host does now."""
        world = self.world
        if world.shared:
            kept = world.correlation ** (max(at - self._at, 0.0) / self.every_s)
            self._shared = kept * self._shared + math.sqrt(1 - kept * kept) * self.chance.gauss(0, 1)
            self._at = at
        self._is_slow_visit = world.slow_visits > 0 and self.chance.random() < world.slow_visits

    def noise(self) -> float:
        """What one run's log rate is off by."""
        world, chance = self.world, self.chance
        own = world.sd * math.sqrt(1 - world.shared) * chance.gauss(0, 1)
        is_slow = self._is_slow_visit or chance.random() < world.outliers
        shared = world.sd * math.sqrt(world.shared) * self._shared if world.shared else 0.0
        return own + shared - (math.log(2) if is_slow else 0.0)


# ---- ways to age ----


def step(factor: float, after_s: float) -> Slowness:
    """From ``after_s`` on the first worker is slower by ``factor``; the next ones are not."""
    return partial(_step, math.log(factor), after_s)


def _step(log_factor: float, after_s: float, age_s: float, worker: int) -> float:
    return log_factor if worker == 0 and age_s >= after_s else 0.0


def linear(to: float, over_s: float) -> Slowness:
    """Each worker's rate falls in a straight line to ``to`` of fresh."""
    return partial(_linear, to, over_s)


def _linear(to: float, over_s: float, age_s: float, worker: int) -> float:  # noqa: ARG001 - all workers alike
    return -math.log(1 - (1 - to) * min(age_s / over_s, 1.0))


# ---- ways of the machine ----


def competitor(at: float) -> float:
    """Another program, 20 minutes in three hours: 0.75 of the rate is left."""
    return -math.log(0.75) if at % (3 * HOUR_S) < 20 * 60 else 0.0


def throttle(at: float) -> float:
    """Six hours a week at 0.7 of the rate."""
    return -math.log(0.7) if at % (7 * DAY_S) < 6 * HOUR_S else 0.0


def day_night(at: float) -> float:
    """A tenth slower by day than by night, as a wave."""
    return -math.log(0.9) * 0.5 * (1 - math.cos(2 * math.pi * at / DAY_S))
