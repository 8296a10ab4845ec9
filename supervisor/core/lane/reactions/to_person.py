"""What a person, a reload or the daemon asks of a lane."""

from __future__ import annotations

from supervisor.core.account.record import Outcome
from supervisor.core.lane.body import Goal
from supervisor.core.lane.commands import CutRequests, HoldGate
from supervisor.core.lane.events import (
    BaselineForgotten,
    BaselineRecalled,
    DrainAsked,
    ProbeAsked,
    RecycleAsked,
    ResumeAsked,
    StartAsked,
    StopAsked,
    TermsChanged,
    WindowChanged,
)
from supervisor.core.lane.organs import Organs
from supervisor.core.states import SERVES, LaneState
from supervisor.core.terms import TimerName, Trigger, Wish

_S = LaneState


def start(lane: Organs, event: StartAsked) -> None:
    """Start, or take back a stop that is under way; a person's start forgets the crashes."""
    body = lane.body
    if event.is_return and body.wish is Wish.STOPPED:
        return
    body.keep(Wish.DRAINED if event.is_resumed else Wish.RUNNING)
    body.crashes.clear()
    match body.state:
        case _S.STOPPED if body.terms.is_on_demand and not event.is_resumed:
            body.enter(_S.UNLOADED, event.at, "on demand: no request yet")
            body.say(HoldGate(body.reason))
        case _S.DRAINING if body.goal is Goal.RECYCLE:
            pass  # it will serve again by itself
        case _S.DRAINING:
            lane.reopen(event.at, "started again by a person")
        case _S.STOPPING:
            body.goal = Goal.RESTART
            body.reason = "started again by a person: a new worker follows"
            body.say(HoldGate(body.reason))
        case _:
            body.disarm(TimerName.BACK_OFF)
            body.begin_start(event.at, event.reason)


def stop(lane: Organs, event: StopAsked) -> None:
    """Stop from any state, and stay stopped; what is in flight gets the drain's time."""
    body = lane.body
    is_persons = not (event.is_shutdown or event.is_removal)
    if is_persons:
        body.keep(Wish.STOPPED)
    else:
        body.is_leaving = True
    why = event.reason or ("stopped by a person" if is_persons else "the daemon stops")
    lane.recycler.give_up(event.at, Outcome.ABORTED, why)
    lane.stand_down()
    body.is_hurried = body.is_hurried or event.is_now
    match body.state:
        case _S.SERVING | _S.SUSPECT | _S.DRAINING:
            due = body.terms.shutdown_timeout_s if event.is_shutdown else body.terms.drain_timeout_s
            body.drain(event.at, Goal.STOP, why, due)
            if event.is_now:
                body.say(CutRequests(body.active.generation, why))
        case _S.STARTING | _S.WARMING | _S.DRAINED:
            body.stop_active(event.at, Goal.STOP, why, hands_over=True)
        case _S.STOPPING:
            body.goal = Goal.STOP
            body.reason = why
            body.close_gate(why)
            if event.is_now:
                body.hurry()
        case _S.BLOCKED if body.is_blocked_on_owner or (body.has_process and is_persons):
            body.stop_active(event.at, Goal.STOP, why)
        case _S.BLOCKED if body.has_process:
            body.rest(_S.STOPPED, event.at, f"{why}; {body.reason}")
        case _:
            body.rest(_S.STOPPED, event.at, why)


def drain(lane: Organs, event: DrainAsked) -> None:
    """Refuse new requests and let the rest finish; the worker stays up."""
    body = lane.body
    body.keep(Wish.DRAINED)
    if body.owed and body.owed[0] is not Trigger.CONFIG:
        body.owed = None  # whoever asked for a recycle now wants it drained
    if body.state in SERVES or body.state is _S.DRAINING:
        why = event.reason or "drained by a person"
        lane.recycler.give_up(event.at, Outcome.ABORTED, why)
        lane.stand_down()
        body.drain(event.at, Goal.DRAIN, why, body.terms.drain_timeout_s)


def resume(lane: Organs, event: ResumeAsked) -> None:
    """Take requests again. It takes back a drain, never a stop."""
    body = lane.body
    if body.wish is not Wish.DRAINED:
        return
    body.keep(Wish.RUNNING)
    if body.state is _S.DRAINED or (body.state is _S.DRAINING and body.goal is Goal.DRAIN):
        lane.reopen(event.at, "resumed by a person")


def recycle(lane: Organs, event: RecycleAsked) -> None:
    """Replace the worker because somebody says so; if no quiet moment is found, later."""
    lane.body.owed = lane.body.owed or (event.trigger, event.reason)
    lane.recycle(event.at, event.trigger, event.reason, is_now=event.is_now, before=lane.judge.verdict)


def probe(lane: Organs, event: ProbeAsked) -> None:
    """Measure now; while a remedy is tried, or a last look taken, that is done anyway."""
    if lane.remedies.trial is None and not lane.last_look.is_under_way:
        lane.measurer.ask(event.at)


def forget_baseline(lane: Organs, _event: BaselineForgotten) -> None:
    """Learn anew what fresh means."""
    lane.judge.reset()


def recall_baseline(lane: Organs, event: BaselineRecalled) -> None:
    """What was learned of workers of another kind does not hold for this one."""
    lane.judge.reset()
    if event.baseline is not None:
        lane.judge.restore(event.baseline)
    if lane.body.state is _S.SUSPECT and not lane.recycler.under_way:
        lane.remedies.drop()
        lane.reopen(event.at, "what the lane runs has changed: it is measured anew")


def change_terms(lane: Organs, event: TermsChanged) -> None:
    """Take up new settings; those that only a new worker can take up wait for it, and it drains first."""
    body = lane.body
    body.terms = event.terms
    lane.judge.terms = event.terms
    lane.measurer.cadence.terms = event.terms.canary
    if not event.needs_worker:
        return
    why = "the configuration changed"
    body.owed = (Trigger.CONFIG, why)
    match body.state:
        case _S.SERVING | _S.SUSPECT | _S.DRAINED:
            lane.recycler.give_up(event.at, Outcome.ABORTED, why)
            lane.recycle(event.at, Trigger.CONFIG, why, before=lane.judge.verdict)
        case _S.STARTING | _S.WARMING:
            lane.stand_down()
            body.stop_active(event.at, Goal.RESTART, why, hands_over=True)
        case _S.BLOCKED if body.is_blocked_on_owner:
            body.stop_active(event.at, Goal.RESTART, why)
        case _S.BACKING_OFF | _S.FAILED:
            body.crashes.clear()
            body.disarm(TimerName.BACK_OFF)
            body.begin_start(event.at, why)
        case _:
            pass  # no worker, or one that drains or goes: it is replaced then, and the next one takes the settings up


def change_window(lane: Organs, event: WindowChanged) -> None:
    """The quiet hours began or ended."""
    lane.body.is_window_open = event.is_open
