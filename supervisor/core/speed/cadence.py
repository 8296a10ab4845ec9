"""When the next canary of a lane is due, how large its prompt is, and when it may hold the gate for it.

A run is paid for by the time that passes until the next one: after a run that took ``c`` seconds there is none for
``c / budget``. So the share of lane time is bounded whatever the model, and a slow model is probed less often.
"""

from __future__ import annotations

from supervisor.core.samples import Purpose, Sample, Status, Verdict, Void
from supervisor.core.terms import CanaryTerms

LARGE_EVERY = 3
"""Every third turn is a larger prompt size's, the others are the smallest's."""

RARE_EVERY = 12
"""Turns between runs with a nonce, and between those of a size whose prompt takes long to read."""

LONG_READ_S = 2.0
HURRY = 0.3
"""A run that the judge wants soon comes after this share of ``every``."""

FIRST_AFTER = 0.1
"""A lane that has just begun to serve is measured after this share of ``every``: its worker is fresh only once."""

DISTURBED_THAT_HOLD = 3
"""So many runs in a row lost to clients, and a suspicion may hold the gate."""

FAILED_HOLDS_THAT_LENGTHEN = 3
"""After that many holds in vain one hold, under suspicion, may be as long as one for a recycle."""

SHORTEST_PAUSE_S = 0.5

_DISTURBED = frozenset({Void.CLIENT_ARRIVED, Void.LANE_BUSY, Void.DEVICE_BUSY})
_FAILURES = frozenset({Void.FAILED, Void.TIMED_OUT})
_POINTLESS = frozenset({Void.UNMEASURABLE, Void.TOO_FEW_TOKENS, Void.NO_TOKENS, Void.HOST_SLOW})


def _is_pointless(sample: Sample) -> bool:
    """No client disturbed the run, so the next one would bring no more: it waits its time, and this one has had its
    turn. So has a further model that cannot be had: it may not be loaded.
    """
    return sample.void in _POINTLESS or (bool(sample.model) and sample.void in _FAILURES)


class Cadence:
    """The canary timetable of one lane. ``at`` is the daemon's monotonic clock, lengths are seconds."""

    def __init__(self, terms: CanaryTerms) -> None:
        self.terms = terms
        """May be set anew at any time."""
        self.is_doubted_by_clients = False
        """Clients' streams have slowed down: a canary is to look soon."""
        self._is_suspicious = False
        self._is_hurried = False
        self._wanted_size: int | None = None
        self._wants_nonce = False
        self._wanted_model: str | None = None
        self._rounds = 0
        """Runs of any model; ``_turn`` counts those of the lane's own."""
        self._turn = 0
        self._last_turn_of: dict[int, int] = {}
        self._read_s: dict[int, float] = {}
        self._prefill_tok_s: float | None = None
        self._refused: set[int] = set()
        self._read_at_once: set[int] = set()
        self._last_end: float | None = None
        self._last_cost_s = 0.0
        self._last_void: Void | None = None
        self._was_pointless = False
        self._wasted_s = 0.0
        self._waits_since: float | None = None
        self._disturbed = 0
        self._failed_holds = 0
        self._no_hold_before = 0.0
        self._hold_began: float | None = None

    def heed(self, verdict: Verdict) -> None:
        """While the judge has doubts, runs may come sooner and hold the gate sooner, and have the size in doubt."""
        self._is_suspicious = verdict.status is Status.SUSPECT
        self._is_hurried = verdict.wants_soon
        self._wanted_model = verdict.wants_model if verdict.wants_runs else None
        self._wanted_size, self._wants_nonce = verdict.wants_size, verdict.wants_nonce

    @property
    def prefill_tok_s(self) -> float | None:
        """How fast prompts were read when it was last measured."""
        return self._prefill_tok_s

    # ---- what next ----

    @property
    def model_due(self) -> str:
        """The model that the next run is of: that of a burst, else each in turn; empty: the lane's own."""
        models = ("", *self.terms.models)
        return models[self._rounds % len(models)] if self._wanted_model is None else self._wanted_model

    def plan(self, at: float) -> tuple[int, bool]:  # noqa: ARG002 - a timetable may ask for the time; this one counts
        """Prompt size of the next run of the lane's own model, and whether it starts with a nonce."""
        wanted = self._wanted_size
        if wanted is not None and (self._is_suspicious or self._wants_nonce or self._may_take(wanted)):
            return wanted, self._wants_nonce
        if self._turn % RARE_EVERY == 0:
            return self._size_to_read(), True
        return self._size(), False

    def _size_to_read(self) -> int:
        """The smallest that takes long enough to read for its rate to be told."""
        sizes = sorted(self.terms.prompt_tokens)
        return next((size for size in sizes if size not in self._read_at_once and self._may_take(size)), sizes[0])

    def _size(self) -> int:
        smallest, *larger = sorted(self.terms.prompt_tokens)
        if self._turn % LARGE_EVERY != 1:  # the first turn, with its nonce, tells how long a large prompt would take
            return smallest
        open_to = [size for size in larger if self._may_take(size)]
        return min(open_to, key=lambda size: self._last_turn_of.get(size, -1), default=smallest)

    def _may_take(self, size: int) -> bool:
        if size in self._refused:
            return False
        expected_s = size / self._prefill_tok_s if self._prefill_tok_s else 0.0
        if self._read_s.get(size, expected_s) <= LONG_READ_S:
            return True
        return self._turn - self._last_turn_of.get(size, 0) >= RARE_EVERY

    def due_in(self, at: float) -> float:
        """Seconds until the next run."""
        every, soonest = self.terms.every_s, self.terms.idle_for_s
        if self._last_end is None:
            return max(FIRST_AFTER * every, min(soonest, every))
        is_hurried = self._is_hurried or self.is_doubted_by_clients
        interval = max(HURRY * every if is_hurried else every, self._last_cost_s / self._share)
        return max(self._last_end + interval - at, min(soonest, every))

    def retry_in(self, at: float) -> float:
        """Seconds until the run that has just come back void is tried again."""
        if self._was_pointless:
            return self.due_in(at)
        pause = max(self.terms.idle_for_s, SHORTEST_PAUSE_S)
        if self._last_void in _FAILURES:
            return pause  # a second failure tells a hang from bad luck, and should come soon
        return max(pause, self._wasted_s / self.terms.burst_budget)

    def took(self, sample: Sample) -> None:
        """A run came back."""
        self._last_void, self._wasted_s = sample.void, sample.took_s
        self._was_pointless = _is_pointless(sample)
        self._disturbed = self._disturbed + 1 if sample.void in _DISTURBED else 0
        is_larger = sample.prompt_tokens != min(self.terms.prompt_tokens)
        if sample.void is Void.UNMEASURABLE and is_larger:
            self._refused.add(sample.prompt_tokens)
        if sample.void is not None and not self._was_pointless:
            return
        is_burst = sample.purpose in (Purpose.BURST, Purpose.REMEDY) and self._last_end is not None
        self._last_end = sample.at
        if sample.void is None or sample.void is Void.UNMEASURABLE:
            self._waits_since = sample.at
        if not is_burst:  # a burst is paid for out of its own budget, by the judge
            self._last_cost_s = sample.took_s
            self._rounds += 1
        if not sample.model:
            self._took_own(sample, is_burst=is_burst)

    def _took_own(self, sample: Sample, *, is_burst: bool) -> None:
        if sample.ttft_s is not None:
            self._read_s[sample.prompt_tokens] = sample.ttft_s
        self._prefill_tok_s = sample.prefill_tok_s or self._prefill_tok_s
        self._learn_to_read(sample)
        if not is_burst:
            self._last_turn_of[sample.prompt_tokens] = self._turn
            self._turn += 1

    def _learn_to_read(self, sample: Sample) -> None:
        if sample.prefill_tok_s is not None:
            self._read_at_once.discard(sample.prompt_tokens)
        elif sample.has_nonce and sample.is_clean:
            self._read_at_once.add(sample.prompt_tokens)

    # ---- a lane that is never idle ----

    def wants_hold(self, at: float, longest_s: float) -> float | None:
        """For how long the gate may be held for the run that is due now; None: not at all.

        A lane that has not been measured for ``force_after`` gets a hold once clients disturb its run, one under
        suspicion as soon as they keep disturbing its runs, and once, after three in vain, for ``longest_s``.
        """
        if self._waits_since is None:
            self._waits_since = at
        is_pressing = self._has_doubts and self._disturbed >= DISTURBED_THAT_HOLD
        is_overdue = self._disturbed > 0 and at - self._waits_since >= self.terms.force_after_s
        if at < self._no_hold_before or not (is_pressing or is_overdue):
            return None
        self._hold_began = at
        is_long = self._has_doubts and self._failed_holds >= FAILED_HOLDS_THAT_LENGTHEN
        return max(longest_s, self.terms.hold_s) if is_long else self.terms.hold_s

    def hold_failed(self, at: float) -> None:
        """No quiet moment came of it: the time to the next hold doubles."""
        base = self.terms.every_s if self._has_doubts else self.terms.force_after_s
        was_long = self._failed_holds >= FAILED_HOLDS_THAT_LENGTHEN
        self._failed_holds = 1 if was_long else self._failed_holds + 1
        self._no_hold_before = at + max(base * 2.0**self._failed_holds, self._held_s(at) / self._share)

    def hold_worked(self, at: float) -> None:
        """It brought a clean run; the held time is paid for like a run."""
        self._failed_holds = 0
        self._no_hold_before = at + self._held_s(at) / self._share

    @property
    def _has_doubts(self) -> bool:
        return self._is_suspicious or self.is_doubted_by_clients

    @property
    def _share(self) -> float:
        return self.terms.burst_budget if self._has_doubts else self.terms.budget

    def _held_s(self, at: float) -> float:
        return 0.0 if self._hold_began is None else max(at - self._hold_began, 0.0)
