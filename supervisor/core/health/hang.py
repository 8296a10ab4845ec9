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

SHORTEST_CPU_WINDOW_S = 1.0
"""Over a shorter time a single burst would look like work."""

LONGEST_LOOK_S = 2.0
SHORTEST_LOOK_S = 0.05
LOOKS_IN_PATIENCE = 4.0
"""Looks come at least so often while patience lasts, so that what moves between two of them is seen in time."""


@dataclass(frozen=True, slots=True)
class HangTerms:
    """``hang`` of lanes.yaml, in seconds."""

    after_s: float = 90.0
    pulse_s: float = 60.0


@dataclass(frozen=True, slots=True)
class Progress:
    """One look at a worker. Counters only ever grow; ``at`` and the other moments are monotonic seconds."""

    at: float
    inflight: int
    """Requests of clients; canaries and pulses watch themselves."""
    busy_since: float | None = None
    """When the first of the requests in flight was sent; None where that is not known."""
    moved_at: float = 0.0
    """When it last sent something that only a working worker sends."""
    counters: tuple[float, ...] = ()
    """Whatever else moves when it works: numbers of its /stats, log lines of progress."""
    cpu_s: float | None = None
    """CPU time of the process tree; None where it cannot be read."""
    oldest_prompt_tokens: int = 0
    """Estimated size of the prompt that has waited longest."""
    prefill_tok_s: float | None = None
    """Measured prefill rate of the lane."""
    expected_s: float = 0.0
    """How long an answer that comes in one piece, and so says nothing before, is expected to take to write."""
    probe_silent_s: float | None = None
    """A canary is out, which is the better pulse, and has heard nothing for so long; None: none is out."""
    pulse_timeout_s: float = 30.0
    """How long a pulse, or a canary in its place, may keep silent."""


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


@dataclass(frozen=True, slots=True)
class Blindness:
    """``seconds`` that ended at the moment ``until``, in which nobody listened to the worker."""

    until: float
    seconds: float


class HangWatch:
    """Watches one worker; begin a new one with each generation."""

    def __init__(self, terms: HangTerms, at: float) -> None:
        self.terms = terms
        """May be set anew at any time."""
        self._moved_at = at
        self._pulsed_at = at
        self._is_pulse_out = False
        self._missed = 0
        self._patience_s = terms.after_s
        self._inflight = 0
        self._busy_since = at
        self._probe_left_s = 0.0
        self._blind: list[Blindness] = []
        self._counters: tuple[float, ...] | None = None
        self._cpu: tuple[float, float] | None = None

    def look(self, now: Progress) -> Finding:
        """Take a reading; ``look_in`` says when the next one is wanted."""
        self._note_movement(now)
        if now.inflight > 0:
            since = now.at if now.busy_since is None and not self._inflight else now.busy_since
            if since is not None and since != self._busy_since:
                self._busy_since = since
                self._forget_blindness(since)
            self._inflight = now.inflight
            return self._judge_busy(now)
        self._inflight = 0
        silent_s = now.probe_silent_s
        self._probe_left_s = 0.0 if silent_s is None else max(now.pulse_timeout_s - silent_s, 0.0)
        if self._is_pulse_out or now.at - self._quiet_since < self.terms.pulse_s or self._probe_left_s > 0.0:
            return Fine()
        if silent_s is not None:
            return self.pulse_missed(now.at, f"a canary got nothing for {silent_s:.0f} s")
        return self._pulse(now.at)

    def look_in(self, at: float) -> float:
        """Seconds until a look may find something: until patience or the time between two pulses is over."""
        longest = min(LONGEST_LOOK_S, self.terms.after_s / LOOKS_IN_PATIENCE, self.terms.pulse_s / LOOKS_IN_PATIENCE)
        if self._inflight:
            due = self._silent_since + self._patience_s
        else:
            due = max(self._quiet_since + self.terms.pulse_s, at + self._probe_left_s)
        return max(min(longest, due - at), SHORTEST_LOOK_S)

    def blind(self, until: float, seconds: float) -> None:
        """This program was late, or the machine asleep or swapping, for so long: that is no silence of the worker."""
        self._blind.append(Blindness(until, seconds))
        self._cpu = None

    def pulse_answered(self, at: float) -> None:
        """The pulse, or a canary in its place, brought its token."""
        self._is_pulse_out = False
        self._missed = 0
        self._pulsed_at = at

    def pulse_void(self, at: float) -> None:
        """The pulse says nothing, for this program or the machine was not well: the next one comes in its time."""
        self._is_pulse_out = False
        self._pulsed_at = at

    def pulse_taken_back(self) -> None:
        """A client came, and nothing was learned: the pulse is due again as soon as the worker is idle."""
        self._is_pulse_out = False

    def pulse_missed(self, at: float, detail: str) -> Finding:
        """The pulse brought nothing in time: repeat it at once, or call it hung."""
        self._missed += 1
        self._is_pulse_out = False
        if self._missed >= PULSES_THAT_MEAN_HUNG:
            return Hung(f"idle, and {self._missed} one-token requests in a row brought nothing: {detail}")
        return self._pulse(at)

    @property
    def _quiet_since(self) -> float:
        return max(self._pulsed_at, self._moved_at)

    @property
    def _silent_since(self) -> float:
        return max(self._moved_at, self._busy_since) + sum(blind.seconds for blind in self._blind)

    def _pulse(self, at: float) -> Finding:
        self._is_pulse_out = True
        self._pulsed_at = at
        return SendPulse()

    def _note_movement(self, now: Progress) -> None:
        if now.moved_at > self._moved_at:
            self._moved(now.moved_at)
            self._missed = 0
        if self._counters is not None and now.counters != self._counters:
            self._moved(now.at)
        self._counters = now.counters
        if now.cpu_s is None:
            return
        since, before = self._cpu or (now.at, now.cpu_s)
        if self._cpu is None:
            self._cpu = now.at, now.cpu_s
        elif now.at - since >= SHORTEST_CPU_WINDOW_S:
            if now.cpu_s - before > WORKING_CORES * (now.at - since):
                self._moved(now.at)
            self._cpu = now.at, now.cpu_s

    def _moved(self, at: float) -> None:
        self._moved_at = at
        self._forget_blindness(at)

    def _forget_blindness(self, before: float) -> None:
        """What was missed earlier explains no silence that began later."""
        self._blind = [blind for blind in self._blind if blind.until > before]

    def _judge_busy(self, now: Progress) -> Finding:
        rate = now.prefill_tok_s or UNKNOWN_PREFILL_TOK_S
        prefill_s = PREFILLS_ALLOWED * now.oldest_prompt_tokens / rate
        self._patience_s = self.terms.after_s + prefill_s + PREFILLS_ALLOWED * now.expected_s
        still = now.at - self._silent_since
        if still < self._patience_s:
            return Fine()
        return Hung(
            f"{now.inflight} in flight and no byte, no counter and no half core of CPU for {still:.0f} s "
            f"(patience {self._patience_s:.0f} s)"
        )
