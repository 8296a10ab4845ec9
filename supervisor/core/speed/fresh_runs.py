"""The fresh runs of spawns, as rates in tokens/s: where they centre, which spawn is a good one, which are kept."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import median

from supervisor.core.numbers import is_number
from supervisor.core.speed.ranks import hodges_lehmann

RUNS_PER_SPAWN = 12
"""Runs of one worker that count, per prompt size, until the pool is full."""

OWN_RUNS = 8
"""A worker's own first runs that make a reference."""

SPAWNS_KEPT = 32
RUNS_THAT_TELL = 5
"""Fewer say nothing, neither of a spawn nor of the lane."""

FAST_SHARE = 0.75
"""A good spawn is one that, of all runs, three in four belong to spawns no faster than it."""

NOT_FRESH = 0.45
"""A run below this share of its fellows' median was not fresh at all, and is left out."""


def rates_in(values: object) -> list[float]:
    """The rates in a JSON value; what is none is left out."""
    if not isinstance(values, list):
        return []
    return [float(value) for value in values if is_number(value) and value > 0][:RUNS_PER_SPAWN]


def centre(rates: Sequence[float]) -> float:
    """Of log rates, with runs left out that were not fresh at all."""
    return _centre_of(tuple(rates))


@lru_cache(maxsize=256)
def _centre_of(rates: tuple[float, ...]) -> float:
    limit = NOT_FRESH * median(rates)
    return hodges_lehmann([math.log(rate) for rate in rates if rate >= limit])


def drop_oldest(spawns: list[list[float]]) -> None:
    """Keep so many spawns; those of few runs, which cannot tell a slow mode from bad luck, go first."""
    while len(spawns) > SPAWNS_KEPT:
        small = next((index for index, spawn in enumerate(spawns[:-1]) if len(spawn) < RUNS_THAT_TELL), 0)
        del spawns[small]


def good_spawn(spawns: Sequence[Sequence[float]]) -> float:
    """The log rate of a good spawn; minus infinity where none has runs enough to tell."""
    for enough in (OWN_RUNS, RUNS_THAT_TELL):
        told = sorted((centre(spawn), len(spawn)) for spawn in spawns if len(spawn) >= enough)
        if told:
            return _upper_quartile(told)
    return -math.inf


def _upper_quartile(told: Sequence[tuple[float, int]]) -> float:
    due, seen, good = FAST_SHARE * sum(runs for _, runs in told), 0, 0.0
    for log_rate, runs in told:
        if seen < due:
            good = log_rate
        seen += runs
    return good
