"""When a lane sends canaries, and what it finds in them.

It decides nothing about the lane: it answers with a ``Finding``, and the lane acts on it. Three situations, three ways:
a warming worker is run until enough runs are in; a serving one by cadence, when idle, in a short hold if it is never
idle, and back to back while the judge is suspicious; a candidate while nothing else runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from supervisor.core.lane.body import LaneBody
from supervisor.core.lane.commands import CancelCanary, HoldGate, OpenGate, RunCanary
from supervisor.core.samples import Purpose, Sample, Status, Verdict, Void
from supervisor.core.speed.cadence import Cadence
from supervisor.core.speed.fresh_runs import RUNS_THAT_TELL
from supervisor.core.speed.judge import Judge
from supervisor.core.speed.passive import PassiveRates, StreamRate
from supervisor.core.states import SERVES
from supervisor.core.terms import TimerName

PAUSE_AFTER_VOID_S = 0.5
FAILURES_THAT_MEAN_HUNG = 2
DISTURBED_THAT_OPEN = 2

_DISTURBED = frozenset({Void.DEVICE_BUSY, Void.HOST_SLOW, Void.LANE_BUSY})
"""A warming worker has no clients: what disturbs it stays, or it is too slow for its canary."""


class Finding(StrEnum):
    """What a run told about the lane."""

    NOTHING = "nothing"
    ENOUGH = "enough"
    """A warming worker has its runs, or cannot get them: open the gate."""
    HEALTHY = "healthy"
    SUSPECT = "suspect"
    DEGRADED = "degraded"
    HOST_SLOW = "host_slow"
    """The machine is: of the worker nothing is known."""
    HUNG = "hung"
    """Canaries fail one after the other though the worker says it is healthy."""


class Measurer:
    """The canaries of one lane."""

    def __init__(self, body: LaneBody, judge: Judge, cadence: Cadence) -> None:
        self._body = body
        self.judge = judge
        self.cadence = cadence
        self.passive = PassiveRates()
        """What clients' streams say of the active worker."""
        self.last_sample: Sample | None = None
        self.last_of_models: dict[str, Sample] = {}
        """The last run of each further model, by the key of `serves`."""
        self.rates: dict[int, list[float]] = {}
        """Clean rates of the warming worker, by prompt size."""
        self._warms_model = ""
        self._wanted = 0
        self._has_warmed_up = False
        self._failures = 0
        self._disturbed = 0
        self._is_running = False
        self._is_holding = False
        self._is_of_all = False
        self._hold_ends = 0.0
        self._is_asked = False
        self._pending = Purpose.ROUTINE

    @property
    def smallest(self) -> int:
        """The smallest prompt size: the one that costs least and verifies."""
        return min(self._body.terms.canary.prompt_tokens)

    # ---- a new worker ----

    def begin_warming(self, runs_wanted: int, sizes: Sequence[int] = (), model: str = "") -> None:
        """A worker is ready: run it until ``runs_wanted`` clean runs are in, at each of ``sizes`` (at the smallest,
        where none is given), of ``model``.
        """
        self._begin_life()
        self.rates = {size: [] for size in sizes or (self.smallest,)}
        self._wanted, self._warms_model = runs_wanted, model
        self._has_warmed_up = False
        self._forget()
        self._body.arm(TimerName.WARM, self._body.terms.warm_timeout_s)
        self._run_warming()

    def _begin_life(self) -> None:
        self.judge.worker_replaced(self._body.active.generation)
        self.passive.new_life()
        self.cadence.is_doubted_by_clients = False

    def _run_warming(self) -> None:
        # A nonce shows how fast prompts are read. The first run must: without that, how long a hang may last is a
        # guess. The others may, for a new worker has no client's prompts to lose.
        is_first = not self._has_warmed_up
        has_nonce = is_first or not self.judge.is_reading_known
        size = min(self.rates, key=lambda each: len(self.rates[each]))
        self._run(Purpose.VERIFY, size, has_warmup=is_first, has_nonce=has_nonce, model=self._warms_model)
        self._has_warmed_up = True

    def warmed(self, sample: Sample) -> Finding:
        """A run of the warming worker came back."""
        self._note(sample)
        if sample.is_clean and sample.decode_tok_s is not None:
            self.judge.observe(sample)
            self.rates.setdefault(sample.prompt_tokens, []).append(sample.decode_tok_s)
            self._disturbed = 0
        if self._failures >= FAILURES_THAT_MEAN_HUNG and sample.void is Void.TIMED_OUT:
            return Finding.HUNG
        if sample.void in _DISTURBED:
            self._disturbed += 1
        is_hopeless = sample.void is Void.UNMEASURABLE or self._disturbed >= DISTURBED_THAT_OPEN
        fewest = min(map(len, self.rates.values()))
        is_told = fewest >= RUNS_THAT_TELL or not self.judge.may_be_slow_spawn
        if is_hopeless or (fewest >= self._wanted and is_told):
            return Finding.ENOUGH
        if sample.is_clean:
            self._run_warming()
        else:
            self._body.arm(TimerName.CANARY, PAUSE_AFTER_VOID_S)
        return Finding.NOTHING

    # ---- a serving one ----

    def begin_cadence(self, at: float) -> None:
        """The lane serves: the next canary comes by cadence."""
        self._forget()
        self.cadence.heed(self.judge.verdict)
        self._body.arm(TimerName.CANARY, self.cadence.due_in(at))

    def stand_down(self) -> None:
        """The lane no longer serves, or begins to: no canary is due, and one that is out is taken back."""
        if self._is_running:
            self._body.say(CancelCanary())
        self._forget()
        self._body.disarm(TimerName.CANARY, TimerName.CANARY_HOLD)

    def yield_gate(self) -> None:
        """Give back a gate that is held for a canary."""
        if self._is_holding:
            self._is_holding = False
            self._body.say(OpenGate(self._body.active.generation))

    def adopt(self, samples: list[Sample]) -> None:
        """A candidate took over: its proof is the beginning of its life."""
        self._begin_life()
        for sample in samples:
            self.judge.observe(sample)

    def ask(self, at: float) -> None:
        """A person wants a run now."""
        self._is_asked = True
        if not self._is_running:
            self.due(at)

    def streamed(self, stream: StreamRate, at: float) -> None:
        """A client's stream ended: slow ones bring the next canary forward, and may hold the gate for it."""
        self.passive.add(stream, self._body.terms.baseline)
        suspicion = self.passive.suspicion
        if suspicion is None or self.cadence.is_doubted_by_clients:
            return
        self.cadence.is_doubted_by_clients = True
        self._body.note(f"{suspicion}; a canary looks soon")
        if not (self._is_running or self._is_holding):
            self._body.arm(TimerName.CANARY, self.cadence.due_in(at))

    def _answer_clients(self, verdict: Verdict) -> None:
        """A canary that finds the worker well has answered their suspicion; one that does not asks for more runs."""
        if self.cadence.is_doubted_by_clients and verdict.status is Status.HEALTHY and not verdict.wants_runs:
            self.cadence.is_doubted_by_clients = False
            self.passive.cleared()
            self._body.note("the canary finds the worker as fast as ever: it is not why clients' streams are slow")

    def due(self, at: float) -> None:
        """The canary's timer fired."""
        if self._is_running or self._is_holding:
            return
        if self._body.state not in SERVES:
            self._run_warming()
            return
        hold_s = self.cadence.wants_hold(at, self._body.terms.recycle.max_hold_s)
        if hold_s is not None:
            self._is_holding = True
            self._hold(at, hold_s)
            return
        self._run_planned(at, idle_for_s=self._idle_for_s())

    def _idle_for_s(self) -> float:
        """A burst and a person's probe only need the lane quiet now; routine runs wait until it has been for a
        while.
        """
        if self._is_asked or self._pending is Purpose.BURST:
            return 0.0
        return self._body.terms.canary.idle_for_s

    def _run_planned(self, at: float, *, idle_for_s: float, patience_s: float = 0.0) -> None:
        model = "" if self._is_asked else self.cadence.model_due
        size, has_nonce = (self.smallest, False) if model else self.cadence.plan(at)
        purpose = Purpose.ASKED if self._is_asked else self._pending
        self._run(
            purpose,
            size,
            idle_for_s=idle_for_s,
            has_warmup=purpose is not Purpose.BURST,
            has_nonce=has_nonce and purpose is not Purpose.ASKED,
            patience_s=patience_s,
            model=model,
        )

    def _hold(self, at: float, hold_s: float) -> None:
        """Those of other lanes for a short hold at most: a long one begins with this lane alone."""
        self._is_of_all = hold_s <= self._body.terms.canary.hold_s
        self._hold_ends = at + hold_s
        self._body.say(HoldGate("a canary needs a quiet moment", is_for_canary=self._is_of_all))
        self._body.arm(TimerName.CANARY_HOLD, hold_s)

    def gate_emptied(self, at: float) -> None:
        """The hold for a canary has its quiet moment."""
        if not self._is_holding or self._is_running:
            return
        left_s = max(self._hold_ends - at, 0.0)
        if not self._is_of_all:
            left_s = min(left_s, self._body.terms.canary.hold_s)
            self._hold(at, left_s)
        self._run_planned(at, idle_for_s=0.0, patience_s=left_s)

    def hold_ran_out(self, at: float) -> None:
        """Clients have waited long enough. A run that is out ends first, unless another lane has clients that wait."""
        if not self._is_holding:
            return
        if self._is_running:
            self._body.say(HoldGate("a canary is about to end"))
        else:
            self.cadence.hold_failed(at)
            self._release(at)

    def observed(self, sample: Sample, at: float) -> Finding:
        """A run of the serving worker came back."""
        self._note(sample)
        self.cadence.took(sample)
        if self._failures >= FAILURES_THAT_MEAN_HUNG:
            return Finding.HUNG
        if sample.void is Void.HOST_SLOW:
            return self._host_is_slow(sample, at)
        if not sample.is_clean:
            self._after_void(at)
            return Finding.NOTHING
        if not sample.model:
            self._is_asked = False
        if self._is_holding:
            self.cadence.hold_worked(at)
        verdict = self.judge.observe(sample)
        self.cadence.heed(verdict)
        self._answer_clients(verdict)
        self._pending = Purpose.BURST if verdict.wants_runs else Purpose.ROUTINE
        self._continue(at)
        return {
            Status.DEGRADED: Finding.DEGRADED,
            Status.SUSPECT: Finding.SUSPECT,
            Status.HEALTHY: Finding.HEALTHY,
            Status.UNKNOWN: Finding.NOTHING,
        }[verdict.status]

    def observed_aside(self, sample: Sample) -> Finding:
        """A run that something else has sent came back: judged like any other, and none follows from it."""
        self._note(sample)
        if self._failures >= FAILURES_THAT_MEAN_HUNG:
            return Finding.HUNG
        if sample.is_clean:
            self.cadence.took(sample)
            self.cadence.heed(self.judge.observe(sample))
        return Finding.NOTHING

    def _host_is_slow(self, sample: Sample, at: float) -> Finding:
        """Nothing is known of the worker while the machine is slow: the evidence stays as it was, the lane waits."""
        self.cadence.heed(self.judge.observe(sample))
        self._is_asked, self._pending = False, Purpose.ROUTINE
        if self._is_holding:
            self.cadence.hold_worked(at)
        self._continue(at)
        return Finding.HOST_SLOW

    def _continue(self, at: float) -> None:
        is_burst = self._pending is Purpose.BURST
        if is_burst and self._is_holding and at < self._hold_ends:
            self._run_planned(at, idle_for_s=0.0)
            return
        if self._is_holding:
            self._release(at)
        is_wanted_now = is_burst or self._is_asked
        self._body.arm(TimerName.CANARY, 0.0 if is_wanted_now else self.cadence.due_in(at))

    def _after_void(self, at: float) -> None:
        if self._is_holding:
            self.cadence.hold_failed(at)
            self._release(at)
            return
        self._body.arm(TimerName.CANARY, self.cadence.retry_in(at))

    def _release(self, at: float) -> None:
        self._is_holding = False
        self._body.disarm(TimerName.CANARY_HOLD)
        self._body.say(OpenGate(self._body.active.generation))
        self._body.arm(TimerName.CANARY, self.cadence.due_in(at))

    # ---- any ----

    def _run(
        self,
        purpose: Purpose,
        size: int,
        *,
        idle_for_s: float = 0.0,
        has_warmup: bool = False,
        has_nonce: bool = False,
        patience_s: float = 0.0,
        model: str = "",
    ) -> None:
        self._is_running = True
        generation = self._body.active.generation
        self._body.say(RunCanary(generation, size, purpose, idle_for_s, has_warmup, has_nonce, patience_s, model))

    def _note(self, sample: Sample) -> None:
        self._is_running = False
        if sample.model:
            self.last_of_models[sample.model] = sample
            return  # that a further model cannot be had does not mean that the worker hangs
        self.last_sample = sample
        if sample.void in (Void.FAILED, Void.TIMED_OUT):
            self._failures += 1
        elif sample.is_clean:
            self._failures = 0

    def _forget(self) -> None:
        self._failures = self._disturbed = 0
        self._is_running = self._is_holding = self._is_asked = False
        self._pending = Purpose.ROUTINE
