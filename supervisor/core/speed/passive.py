"""What clients' streams tell of a worker's speed: enough to raise a suspicion, never to convict.

Streams differ by what they ask, so each is held against streams of its own kind: about as long a context, about as many
at once, and its tokens known in the same way. Their reference is what the same worker gave such streams while it was
fresh. When they have slowed down, a canary is to look soon; what it finds well is from then on what is usual here.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from statistics import median
from typing import Any

from supervisor.core.terms import BaselineTerms
from supervisor.core.words import share

CONTEXTS = (1000, 4000, 16000, 64000)
"""Prompt tokens at which another bucket begins."""

CROWDS = (2, 3, 5, 9)
"""Streams at once, likewise."""

FRESH_STREAMS = 12
STREAMS_THAT_REFER = 5
STREAMS_THAT_TELL = 8
REMEMBERED = 12
SLOW = math.log(1.3)
"""Streams scatter more than canaries: what they ask differs."""

ALONE_THAT_TELL = 3
CONTEXT_SHARE = 0.67
"""Streams below this share of the canary's rate are slow for their context, where the canary is well."""


@dataclass(frozen=True, slots=True)
class StreamRate:
    """One client's whole stream."""

    tok_s: float
    context_tokens: int
    """Of its prompt, about."""
    at_once: int
    """Streams on the device when it ended, itself included."""
    is_estimated: bool
    """Its tokens were not told: chunks times what a chunk of the canary's carries."""
    worker_age_s: float
    worker_requests: int


class PassiveRates:
    """Of one worker's life, kept in constant space: a stream costs the same however many came before."""

    def __init__(self) -> None:
        self.new_life()

    def new_life(self) -> None:
        """Another worker serves."""
        self.streams = 0
        self._fresh: dict[tuple[int, int, bool], list[float]] = {}
        self._slowness: deque[float] = deque(maxlen=REMEMBERED)
        self._is_estimated: deque[bool] = deque(maxlen=REMEMBERED)
        self._usual = 0.0
        """How far below fresh streams may lie, since a canary found the worker well."""
        self._alone: dict[int, deque[float]] = {}

    def add(self, stream: StreamRate, terms: BaselineTerms) -> None:
        """A client's stream ended."""
        context, log_rate = _bucket(stream.context_tokens, CONTEXTS), math.log(stream.tok_s)
        self.streams += 1
        if stream.at_once == 1:
            self._alone.setdefault(context, deque(maxlen=REMEMBERED)).append(stream.tok_s)
        fresh = self._fresh.setdefault((context, _bucket(stream.at_once, CROWDS), stream.is_estimated), [])
        is_fresh = stream.worker_age_s <= terms.fresh_for_s and stream.worker_requests <= terms.fresh_requests
        if is_fresh:
            if len(fresh) < FRESH_STREAMS:
                fresh.append(log_rate)
        elif len(fresh) >= STREAMS_THAT_REFER:
            self._slowness.append(median(fresh) - log_rate)
            self._is_estimated.append(stream.is_estimated)

    @property
    def ratio(self) -> float | None:
        """Rate of the last streams over that of the worker's first ones; None while too few tell."""
        return math.exp(-median(self._slowness)) if len(self._slowness) >= STREAMS_THAT_TELL else None

    @property
    def suspicion(self) -> str | None:
        """Why a canary should look soon, in words; None if there is no reason."""
        ratio = self.ratio
        if ratio is None or -math.log(ratio) <= SLOW + self._usual:
            return None
        estimated = ", estimated from chunks" if any(self._is_estimated) else ""
        return f"clients' streams run at {share(ratio)} of what such streams had at first{estimated}"

    def cleared(self) -> None:
        """A canary found the worker well: how slow streams are now is not its fault."""
        if self.ratio is not None:
            self._usual = max(-math.log(self.ratio), 0.0)
        self._slowness.clear()
        self._is_estimated.clear()

    def tok_s_by_context(self) -> dict[int, float]:
        """Median rate of streams that were alone, by the least prompt tokens of their bucket."""
        return {
            (0, *CONTEXTS)[context]: median(rates)
            for context, rates in sorted(self._alone.items())
            if len(rates) >= ALONE_THAT_TELL
        }

    def context_words(self, canary_tok_s: float | None) -> str | None:
        """That streams are slow for the length of their context beside a canary that is well; None if they are not."""
        found = [(start, rate) for start, rate in self.tok_s_by_context().items() if start]
        if canary_tok_s is None or not found or found[-1][1] >= CONTEXT_SHARE * canary_tok_s:
            return None
        start, rate = found[-1]
        speeds = f"run at {rate:.1f} tok/s, the canary at {canary_tok_s:.1f}"
        return f"streams of {start} prompt tokens and more {speeds}: context, not age"

    def summary(self, canary_tok_s: float | None) -> dict[str, Any]:
        """For people."""
        return {
            "streams": self.streams,
            "ratio": self.ratio,
            "estimated": any(self._is_estimated),
            "suspicion": self.suspicion,
            "by_context_tokens": {str(start): rate for start, rate in self.tok_s_by_context().items()},
            "context": self.context_words(canary_tok_s),
        }


def _bucket(value: int, starts: tuple[int, ...]) -> int:
    return sum(value >= start for start in starts)
