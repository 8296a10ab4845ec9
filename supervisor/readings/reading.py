"""One report of a server on itself, in the words that all servers' reports are translated to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

Phases = tuple[tuple[str, float], ...]
"""What a step of decoding is made of: name and milliseconds."""


@dataclass(frozen=True, slots=True)
class Totals:
    """Counts since the server began, which only ever grow. None: not told."""

    tokens: float | None = None
    """Generated."""
    decode_s: float | None = None
    """Time that requests have spent in decoding."""
    prompt_tokens: float | None = None
    prompt_s: float | None = None
    steps: float | None = None
    """Cycles of speculation; of a server that does not speculate, none are told."""
    step_tokens: float | None = None
    """Tokens that these cycles gave."""
    accepted: tuple[float, ...] = ()
    """Drafted tokens that were taken, by depth."""
    phases_s: Phases = ()
    """Seconds in each part of decoding."""

    @property
    def counters(self) -> tuple[float, ...]:
        """What grows while the server gets anywhere."""
        counts = (self.tokens, self.prompt_tokens, self.steps)
        return tuple(count for count in counts if count is not None)


@dataclass(frozen=True, slots=True)
class Reading:
    """Rates are per stream; what is about a step is about one cycle of speculation where the server speculates."""

    running: int | None = None
    queued: int | None = None
    decode_tok_s: float | None = None
    prefill_tok_s: float | None = None
    tokens_per_step: float | None = None
    acceptance: tuple[float, ...] = ()
    """Shares of drafted tokens taken, by depth; a single one where only the whole is told."""
    step_ms: float | None = None
    phases_ms: Phases = ()
    context_tokens: int | None = None
    """How long the context was that this is about."""
    cache_hit: float | None = None
    """Share of prompt tokens, or of lookups, that the prefix cache knew."""
    memory_bytes: float | None = None
    cache_bytes: float | None = None
    """Of that, what is kept of prompts; a full cache is no fault."""
    uptime_s: float | None = None
    identity: str | None = None
    """Another one means that the server was restarted."""
    totals: Totals = Totals()
    is_progress: bool = False
    """Only a server that gets somewhere says this."""


class LogReader(Protocol):
    """Reads the lines of one server's life, in order; ``at`` are monotonic seconds."""

    tells_of_answers: bool
    """Whether a line behind each answer tells how it was made."""

    def read(self, line: str, at: float) -> Reading | None:
        """What the line tells; None if nothing."""


BodyReader = Callable[[bytes], Reading | None]
"""Reads an endpoint's answer; None where it is not what that server says."""


def between(before: Reading, after: Reading) -> Reading:
    """What ``after`` tells, and what its counts tell of the time since ``before``."""
    old, new = before.totals, after.totals
    tokens, steps = _grown(old.tokens, new.tokens), _grown(old.steps, new.steps)
    phases = _phases_ms(old.phases_s, new.phases_s, steps)
    whole_ms = sum(ms for _, ms in phases) or None
    return Reading(
        running=after.running,
        queued=after.queued,
        decode_tok_s=_share(tokens, _grown(old.decode_s, new.decode_s)) or after.decode_tok_s,
        prefill_tok_s=_share(_grown(old.prompt_tokens, new.prompt_tokens), _grown(old.prompt_s, new.prompt_s))
        or after.prefill_tok_s,
        tokens_per_step=_share(_grown(old.step_tokens, new.step_tokens), steps) or after.tokens_per_step,
        acceptance=_acceptance(old.accepted, new.accepted, steps) or after.acceptance,
        step_ms=whole_ms or _times(_share(_grown(old.decode_s, new.decode_s), steps), 1000.0) or after.step_ms,
        phases_ms=phases or after.phases_ms,
        context_tokens=after.context_tokens,
        cache_hit=after.cache_hit,
        memory_bytes=after.memory_bytes,
        cache_bytes=after.cache_bytes,
        uptime_s=after.uptime_s,
        identity=after.identity,
        totals=new,
        is_progress=new.counters != old.counters,
    )


def is_another_life(before: Reading, after: Reading) -> bool:
    """Whether the server was restarted in between: by its name for itself, its uptime, or counts that fell."""
    if before.identity is not None and after.identity is not None:
        return before.identity != after.identity
    if before.uptime_s is not None and after.uptime_s is not None:
        return after.uptime_s < before.uptime_s
    old, new = before.totals.counters, after.totals.counters
    return len(old) == len(new) and any(late < early for early, late in zip(old, new, strict=True))


def _grown(before: float | None, after: float | None) -> float | None:
    return None if before is None or after is None or after <= before else after - before


def _share(part: float | None, whole: float | None) -> float | None:
    return None if part is None or not whole else part / whole


def _times(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor


def _acceptance(before: tuple[float, ...], after: tuple[float, ...], steps: float | None) -> tuple[float, ...]:
    """Of each depth: how many of the cycles took a draft so far down."""
    if not steps:
        return ()
    padded = before + (0.0,) * (len(after) - len(before))
    return tuple(max(new - old, 0.0) / steps for old, new in zip(padded, after, strict=False))


def _phases_ms(before: Phases, after: Phases, steps: float | None) -> Phases:
    if not steps:
        return ()
    old = dict(before)
    spent = ((name, (seconds - old.get(name, 0.0)) * 1000.0 / steps) for name, seconds in after)
    return tuple((name, ms) for name, ms in spent if ms > 0.0)
