"""A lane's parts, and the few moves that need several of them."""

from __future__ import annotations

from supervisor.core.account.cause import of_slowness
from supervisor.core.account.record import Outcome
from supervisor.core.lane.body import Goal, LaneBody
from supervisor.core.lane.commands import CutRequests
from supervisor.core.lane.last_look import LastLook
from supervisor.core.lane.measurer import Measurer
from supervisor.core.lane.overlap import Overlap
from supervisor.core.lane.recycler import Recycler
from supervisor.core.lane.remedies import Relief, Remedies
from supervisor.core.recycle.worth import Worth
from supervisor.core.samples import Sample, Status, Verdict
from supervisor.core.speed.ageing import STARTING_SHARE
from supervisor.core.speed.cadence import Cadence
from supervisor.core.speed.judge import Judge
from supervisor.core.states import LaneState
from supervisor.core.terms import Replace, Trigger

FRESH_RUNS_WANTED = 5
"""Clean runs of a new worker before its gate opens, while the lane's baseline is not full."""

ROUTINE_RUNS_WANTED = 1

SLOW_SPAWNS_TRIED_AGAIN = 2


class Organs:
    """What the reactions to events act through."""

    def __init__(self, body: LaneBody, judge: Judge, cadence: Cadence) -> None:
        self.body = body
        self.measurer = Measurer(body, judge, cadence)
        self.recycler = Recycler(body, judge)
        self.overlap = Overlap(body, self.recycler)
        self.remedies = Remedies(body)
        self.last_look = LastLook(body, judge, self.recycler)
        self.worth = Worth()
        self._slow_spawns = 0
        """In a row."""

    @property
    def judge(self) -> Judge:
        """The one judge of the lane's speed."""
        return self.measurer.judge

    def warm(self, at: float) -> None:
        """The active worker is ready: measure it before its gate opens."""
        body, replacement = self.body, self.recycler.under_way
        body.active.ready_at = at
        body.enter(LaneState.WARMING, at, "the worker is up; its first canaries run")
        wanted = replacement.runs_wanted if replacement else ROUTINE_RUNS_WANTED
        self.measurer.begin_warming(
            wanted if self.judge.is_baseline_full else FRESH_RUNS_WANTED,
            replacement.sizes if replacement else (),
            replacement.model if replacement else "",
        )

    def open_warmed(self, at: float) -> None:
        """The warming worker has its runs, or had its time: open its gate."""
        if self._tries_again(at):
            return
        body, measurer = self.body, self.measurer
        rates = measurer.rates.get(measurer.smallest, [])
        self.stand_down()
        body.start_took_s = at - body.active.begun_at
        speed = f"{rates[-1]:.1f} tok/s" if rates else "not measured yet"
        body.serve(at, f"generation {body.active.generation} serves ({speed})")
        self.recycler.serving(at, measurer.rates)
        self.measure_on(at)

    def _tries_again(self, at: float) -> bool:
        """A worker that came up slow by bad luck is tried again, at most twice; then it is the best to be had."""
        judge, recycler = self.judge, self.recycler
        if not judge.is_slow_spawn:
            self._slow_spawns = 0
            return False
        trigger = recycler.under_way.trigger if recycler.under_way else None
        if trigger in (Trigger.DEGRADED, Trigger.AGE):
            return False  # what that brought is told by comparing
        if self._slow_spawns >= SLOW_SPAWNS_TRIED_AGAIN or not self.body.terms.recycle.acts_alone:
            judge.accept_spawn()
            self._slow_spawns = 0
            return False
        self._slow_spawns += 1
        self.stand_down()
        recycler.finish(at)
        recycler.begin(at, Trigger.BAD_SPAWN, f"it came up slow: {judge.verdict.reason}", before=judge.verdict)
        return True

    def weigh(self, sample: Sample, at: float) -> None:
        """A clean run is in: how much this life has done by now."""
        worker, verdict = self.body.active, self.judge.verdict
        if self.worth.generation != worker.generation:
            self.worth = Worth(worker.generation)
        if verdict.ratio is not None and verdict.status is not Status.UNKNOWN:
            self.worth.measured(worker.uptime_s(at), verdict.ratio)
        self.body.life.ran(sample, verdict, self.measurer.passive.context_words(verdict.decode_tok_s))

    def objection(self, at: float) -> str | None:
        """Why the active worker may not be recycled for slowness now, in words; None if it may."""
        body = self.body
        refusal = body.allowance.objection(
            at,
            body.terms.recycle,
            replace=body.replace,
            uptime_s=body.active.uptime_s(at),
            is_window_open=body.is_window_open,
        )
        if refusal is None:
            return self.worth.objection(self._cost_s)
        if body.terms.recycle.is_advised_only:
            return "; ".join((refusal, self.worth.advice(self._cost_s, self.judge.fresh_tok_s)))
        return refusal

    def best_age_s(self) -> float | None:
        """The age at which the active worker is replaced, however fast it still is; None: at none."""
        body = self.body
        if not body.terms.recycle.learns:
            return None
        least_s = body.start_took_s / STARTING_SHARE if body.replace is Replace.OVERLAP else 0.0
        return self.judge.ageing.best_age_s(self._cost_s, max(least_s, body.terms.recycle.min_uptime_s))

    @property
    def _cost_s(self) -> float:
        """Seconds of service that a recycle would cost now."""
        body = self.body
        if body.replace is Replace.OVERLAP:
            return 0.0
        return body.cost.seconds(body.start_took_s, self.measurer.cadence.prefill_tok_s)

    # ---- mild remedies ----

    def try_remedies(self, at: float) -> bool:
        """The worker is degraded: begin what it can undo by itself, if there is such a thing; whether there is."""
        body, verdict = self.body, self.judge.verdict
        is_free = body.terms.recycle.acts_alone and body.is_window_open and not body.allowance.is_held_off(at)
        if not is_free or self.recycler.under_way:
            return False
        cause = of_slowness(body.life.evidence(verdict))
        names = self.remedies.to_try(at, cause)
        if not names:
            return False
        self.measurer.yield_gate()
        self.stand_down()
        return self.remedies.begin(names, verdict, cause, at)

    def relieve(self, relief: Relief, at: float) -> None:
        """A remedy was tried: end it if it cured the worker, or replace it after all."""
        trial, body = self.remedies.trial, self.body
        if trial is None or relief is Relief.GOES_ON:
            return
        self.remedies.drop()
        if relief is Relief.CURED:
            self.recycler.relieved(at, trial.verdict, trial.cause, tuple(trial.tried))
            body.enter(LaneState.SERVING, at, f"{trial.tried[-1].name} cured it: {self.judge.verdict.reason}")
            self.measurer.begin_cadence(at)
        else:
            self.recycle_degraded(at, trial.verdict)
            if self.recycler.under_way is None:
                self.measurer.begin_cadence(at)

    def recycle_degraded(self, at: float, verdict: Verdict) -> None:
        """Replace a worker that has aged, or say why not."""
        body, objection = self.body, self.objection(at)
        if objection is None:
            body.enter(LaneState.SUSPECT, at, verdict.reason)
            self.recycle(at, Trigger.DEGRADED, verdict.reason, before=verdict)
        else:
            body.enter(LaneState.SUSPECT, at, f"{verdict.reason}; not recycled: {objection}")

    def stand_down(self) -> None:
        """Something else is done with the lane: no canary and no remedy runs."""
        self.measurer.stand_down()
        self.remedies.drop()

    def reopen(self, at: float, reason: str) -> None:
        """Serve on with the worker that is there."""
        self.body.serve(at, reason)
        self.measure_on(at)

    def measure_on(self, at: float) -> None:
        """Back to canaries by cadence, if the lane serves."""
        if self.body.state is LaneState.SERVING:
            self.measurer.begin_cadence(at)

    def recycle(
        self, at: float, trigger: Trigger, reason: str, *, is_now: bool = False, before: Verdict | None = None
    ) -> None:
        """Begin a recycle; canaries rest meanwhile, they would only be in its way."""
        self.measurer.yield_gate()
        self.stand_down()
        self.recycler.begin(at, trigger, reason, is_now=is_now, before=before, remedies=self.remedies.tried())

    def replace_hung(self, at: float, evidence: str) -> None:
        """The worker gets nowhere: what it has is cut, and it is replaced, or ended if that was wanted anyway.

        A candidate steps in for it.
        """
        body = self.body
        self.stand_down()
        if body.state in (LaneState.STARTING, LaneState.WARMING, LaneState.BLOCKED):
            body.stop_active(at, Goal.RETRY, evidence)
        elif body.goal in (Goal.STOP, Goal.UNLOAD):
            body.say(CutRequests(body.active.generation, evidence))
            body.stop_active(at, body.goal, evidence)
        else:
            body.crashes.add(at, body.active.generation)
            if self.overlap.can_step_in:
                self.overlap.leave_behind(at, evidence)
                self._step_in(at, evidence)
            else:
                self.recycler.begin(at, Trigger.HUNG, evidence)

    def crash(self, at: float, reason: str, trigger: Trigger = Trigger.CRASHED) -> None:
        """The active worker died by itself: the candidate steps in, or a new start follows after a pause.

        With ``Trigger.OPERATOR`` its owner has replaced it, which is no crash.
        """
        body, dead = self.body, self.body.active
        self.stand_down()
        if trigger is Trigger.CRASHED:
            body.crashes.add(at, dead.generation)
        self.recycler.lost(at, dead, reason, trigger)
        if body.workers.candidate is None:
            self.try_again(at, reason)
            return
        body.workers.active = None
        self._step_in(at, reason)

    def _step_in(self, at: float, reason: str) -> None:
        """The candidate becomes the active worker, proved or not, and is measured before its gate opens."""
        body = self.body
        body.workers.promote()
        body.goal = None
        body.enter(LaneState.BACKING_OFF, at, reason)
        body.enter(LaneState.STARTING, at, f"{reason}; the new worker is already on its way")
        body.close_gate(body.reason)
        if body.active.ready_at is not None:
            self.warm(at)

    def try_again(self, at: float, reason: str) -> None:
        """Start anew after a pause, unless that has become a loop; a server of somebody else is looked for again."""
        body = self.body
        if body.crashes.is_loop(at) and body.terms.can_restart:
            self.recycler.give_up(at, Outcome.FAILED, "a person has to look at it")
            body.rest(LaneState.FAILED, at, f"{reason}; {body.crashes.recent(at)} times within ten minutes")
        else:
            body.back_off(at, reason)
