"""The first and the last readings of one worker, kept apart by the conditions they were made under."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from statistics import median
from typing import Final

from supervisor.core.speed.own_words import Change, OwnWords
from supervisor.readings.reading import Reading

RUNS: Final = 5
"""Readings that make a median. Told of conditions that have been met more often than that."""
MOST_CONDITIONS: Final = 16


@dataclass(frozen=True, slots=True)
class Conditions:
    """What a step's time depends on, if nothing is wrong. Only readings of like conditions are compared."""

    canary_tokens: int | None = None
    """The prompt size of the canary that it is about; None: of clients' requests."""
    model: str = ""
    """Which of several models the canary asked; empty: the lane's own, or the only one."""
    running: int | None = None
    context_octave: int | None = None
    """Contexts from 2^n to below 2^(n+1) are alike enough."""


def conditions_of(reading: Reading, canary_tokens: int | None = None, model: str = "") -> Conditions:
    """Under which a reading was made."""
    if canary_tokens is not None:
        return Conditions(canary_tokens, model)
    context = reading.context_tokens
    return Conditions(running=reading.running, context_octave=context.bit_length() if context else None)


@dataclass
class _Remembered:
    first: list[Reading] = field(default_factory=list)
    last: deque[Reading] = field(default_factory=lambda: deque(maxlen=RUNS))
    seen: int = 0

    def add(self, reading: Reading) -> None:
        self.seen += 1
        if len(self.first) < RUNS:
            self.first.append(reading)
        self.last.append(reading)


class Recollection:
    """Bounded: of each of at most sixteen conditions the first five readings and the last five."""

    def __init__(self) -> None:
        self._by_conditions: dict[Conditions, _Remembered] = {}
        self._memory, self._cache = _Remembered(), _Remembered()

    def add(self, reading: Reading, canary_tokens: int | None = None, model: str = "") -> None:
        """Keep what it tells of speed, and of memory."""
        if reading.memory_bytes is not None:
            self._memory.add(reading)
        if reading.cache_bytes is not None:
            self._cache.add(reading)
        if reading.step_ms is None and reading.tokens_per_step is None and reading.decode_tok_s is None:
            return
        conditions = conditions_of(reading, canary_tokens, model)
        if conditions not in self._by_conditions and len(self._by_conditions) >= MOST_CONDITIONS:
            return
        self._by_conditions.setdefault(conditions, _Remembered()).add(reading)

    def own_words(self) -> OwnWords | None:
        """Of the conditions best known, canaries before clients; None while there is nothing to compare."""
        known = [(conditions, kept) for conditions, kept in self._by_conditions.items() if kept.seen > RUNS]
        memory = _change(self._memory, lambda reading: reading.memory_bytes) if self._memory.seen > RUNS else None
        cache = _change(self._cache, lambda reading: reading.cache_bytes) if self._cache.seen > RUNS else None
        if not known:
            return OwnWords(memory_bytes=memory, cache_bytes=cache) if memory or cache else None
        _, best = max(known, key=lambda one: (one[0].canary_tokens is not None, one[1].seen))
        return OwnWords(
            step_ms=_change(best, lambda reading: reading.step_ms),
            phases_ms=_phases(best),
            tokens_per_step=_change(best, lambda reading: reading.tokens_per_step),
            acceptance=_acceptance(best),
            decode_tok_s=_change(best, lambda reading: reading.decode_tok_s),
            prefill_tok_s=_change(best, lambda reading: reading.prefill_tok_s),
            memory_bytes=memory,
            cache_bytes=cache,
        )


def _change(kept: _Remembered, of: Callable[[Reading], float | None]) -> Change | None:
    first, last = _median(map(of, kept.first)), _median(map(of, kept.last))
    return None if first is None or last is None else (first, last)


def _median(told: Iterable[float | None]) -> float | None:
    known = [value for value in told if value is not None]
    return median(known) if known else None


def _phases(kept: _Remembered) -> tuple[tuple[str, Change], ...]:
    names = dict.fromkeys(name for reading in kept.first for name, _ in reading.phases_ms)
    changes = ((name, _change(kept, partial(_phase, name=name))) for name in names)
    return tuple((name, change) for name, change in changes if change is not None)


def _phase(reading: Reading, name: str) -> float | None:
    return dict(reading.phases_ms).get(name)


def _acceptance(kept: _Remembered) -> tuple[Change, ...]:
    depths = max((len(reading.acceptance) for reading in kept.first), default=0)
    changes = (_change(kept, partial(_taken, depth=depth)) for depth in range(depths))
    return tuple(change for change in changes if change is not None)


def _taken(reading: Reading, depth: int) -> float | None:
    return reading.acceptance[depth] if depth < len(reading.acceptance) else None
