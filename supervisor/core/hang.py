"""Whether a worker has stopped getting anywhere.

With requests in flight it is watched for progress of any kind: a byte, a counter of its own, CPU time. Without, a
one-token request is sent now and then; one missed is repeated at once, two mean it is hung. Slowness is not this file's
business: a worker that makes progress is fine however slow.
"""

from __future__ import annotations

from dataclasses import dataclass

PREFILLS_ALLOWED = 3.0
"""So many times the estimated time to read the prompt are added to the patience."""

UNKNOWN_PREFILL_TOK_S = 50.0
"""Prefill rate believed of a lane that has not shown one: a slow CPU's."""

WORKING_CORES = 0.5
"""CPU time at this rate counts as progress."""

PULSES_THAT_MEAN_HUNG = 2


@dataclass(frozen=True, slots=True)
class HangTerms:
    """``hang`` of lanes.yaml, in seconds."""

    after_s: float = 90.0
    pulse_s: float = 60.0


@dataclass(frozen=True, slots=True)
class Progress:
    """One look at a worker. Counters only ever grow; ``at`` is monotonic seconds."""

    at: float
    inflight: int
    """Requests of clients; canaries and pulses watch themselves."""
    bytes_received: int = 0
    """From the worker, over all requests, comments included."""
    counters: tuple[float, ...] = ()
    """Whatever else moves when it works: numbers of its /stats, log lines of progress."""
    cpu_s: float | None = None
    """CPU time of the process tree; None where it cannot be read."""
    oldest_prompt_tokens: int = 0
    """Estimated size of the prompt that has waited longest."""
    prefill_tok_s: float | None = None
    """Measured prefill rate of the lane."""


@dataclass(frozen=True, slots=True)
class Fine:
    """Nothing to do."""


@dataclass(frozen=True, slots=True)
class SendPulse:
    """Send a one-token request, then say ``pulse_answered`` or ``pulse_missed``."""


@dataclass(frozen=True, slots=True)
class Hung:
    """The worker is to be replaced."""

    evidence: str


Finding = Fine | SendPulse | Hung


class HangWatch:
    """Watches one worker; begin a new one with each generation."""

    def __init__(self, terms: HangTerms, at: float) -> None:
        self.terms = terms
        """May be set anew at any time."""
        self._last: Progress | None = None
        self._moved_at = at
        self._pulsed_at = at
        self._is_pulse_out = False
        self._missed = 0

    def look(self, now: Progress) -> Finding:
        """Take a reading, once every few seconds."""
        has_moved = self._has_moved(now)
        was_idle = self._last is None or self._last.inflight == 0
        self._last = now
        if now.inflight > 0:
            if has_moved or was_idle:
                self._moved_at = now.at
            return self._judge_busy(now)
        if has_moved:
            self._pulsed_at = max(self._pulsed_at, now.at)
        if self._is_pulse_out or now.at - self._pulsed_at < self.terms.pulse_s:
            return Fine()
        return self._pulse(now.at)

    def pulse_answered(self, at: float) -> None:
        """The pulse brought its token."""
        self._is_pulse_out = False
        self._missed = 0
        self._pulsed_at = at

    def pulse_void(self, at: float) -> None:
        """The pulse was taken back, for a client came: it says nothing."""
        self._is_pulse_out = False
        self._pulsed_at = at

    def pulse_missed(self, at: float, detail: str) -> Finding:
        """The pulse brought nothing in time: repeat it at once, or call it hung."""
        self._missed += 1
        self._is_pulse_out = False
        if self._missed >= PULSES_THAT_MEAN_HUNG:
            return Hung(f"idle, and {self._missed} one-token requests in a row brought nothing: {detail}")
        return self._pulse(at)

    def _pulse(self, at: float) -> Finding:
        self._is_pulse_out = True
        self._pulsed_at = at
        return SendPulse()

    def _has_moved(self, now: Progress) -> bool:
        last = self._last
        if last is None:
            return True
        if now.bytes_received != last.bytes_received or now.counters != last.counters:
            return True
        if now.cpu_s is None or last.cpu_s is None:
            return False
        return now.cpu_s - last.cpu_s > WORKING_CORES * max(now.at - last.at, 0.0)

    def _judge_busy(self, now: Progress) -> Finding:
        rate = now.prefill_tok_s or UNKNOWN_PREFILL_TOK_S
        patience = self.terms.after_s + PREFILLS_ALLOWED * now.oldest_prompt_tokens / rate
        still = now.at - self._moved_at
        if still < patience:
            return Fine()
        return Hung(
            f"{now.inflight} in flight and no byte, no counter and no half core of CPU for {still:.0f} s "
            f"(patience {patience:.0f} s)"
        )
