"""What happens when a wait has lasted long enough."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from supervisor.core.account.record import Outcome
from supervisor.core.lane.body import KILL_PATIENCE_S, Goal
from supervisor.core.lane.commands import CutRequests, KillWorker
from supervisor.core.lane.events import TimerFired
from supervisor.core.lane.organs import Organs
from supervisor.core.states import SERVES, LaneState
from supervisor.core.terms import TimerName, Trigger

_S = LaneState


class Wait(NamedTuple):
    """In which states the end of a wait still means something, and what."""

    states: frozenset[LaneState]
    over: Callable[[Organs, float], None]


def fired(lane: Organs, event: TimerFired) -> None:
    """A timer fired; in a state that no longer waits for it, it means nothing."""
    wait = WAITS[event.name]
    if lane.body.state in wait.states:
        wait.over(lane, event.at)


def _no_room(lane: Organs, at: float) -> None:
    if lane.body.workers.candidate:
        _candidate_late(lane, at)
    elif lane.body.state is _S.STARTING:
        lane.body.enter(_S.BLOCKED, at, lane.body.reason)


def _start_late(lane: Organs, at: float) -> None:
    body = lane.body
    if body.workers.candidate:
        _candidate_late(lane, at)
    elif body.state is _S.STARTING and not body.terms.can_restart:
        body.block_on_owner(at, f"the server has not answered for {body.terms.start_timeout_s:.0f} s")
    elif body.state is _S.STARTING:
        body.stop_active(at, Goal.RETRY, f"not ready within start_timeout ({body.terms.start_timeout_s:.0f} s)")


def _candidate_late(lane: Organs, at: float) -> None:
    lane.overlap.candidate_lost(at, "it was not ready in time")
    lane.measurer.begin_cadence(at)


def _warm_late(lane: Organs, at: float) -> None:
    lane.open_warmed(at)


def _canary_due(lane: Organs, at: float) -> None:
    lane.measurer.due(at)


def _canary_hold_over(lane: Organs, at: float) -> None:
    lane.measurer.hold_ran_out(at)


def _idle_wait_over(lane: Organs, at: float) -> None:
    if lane.recycler.is_about(Trigger.AGE):
        lane.recycler.give_up(at, Outcome.ABORTED, "no idle moment came; tried again later")
        lane.reopen(at, "not replaced for its age: no idle moment came")
    else:
        lane.recycler.drain_old(at)


def _drain_late(lane: Organs, at: float) -> None:
    body = lane.body
    match body.goal:
        case Goal.STOP:
            body.say(CutRequests(body.active.generation, body.reason))
            body.arm(TimerName.DRAIN, KILL_PATIENCE_S)
        case Goal.DRAIN:
            body.reason = "drained by a person; requests in flight outlast drain_timeout and may go on"
            body.arm(TimerName.DRAIN, body.terms.drain_timeout_s)
        case Goal.UNLOAD:
            lane.reopen(at, "busy again")
        case _:
            lane.recycler.drain_ran_out()


def _abort_drain(lane: Organs, at: float) -> None:
    if lane.body.goal is Goal.RECYCLE:
        why = "requests in flight outlasted the drain"
        lane.recycler.give_up(at, Outcome.ABORTED, f"{why}; tried again later")
        lane.reopen(at, f"the recycle was aborted: {why}")


def _proof_disturbed(lane: Organs, at: float) -> None:
    lane.overlap.disturbed(at)


def _proof_retried(lane: Organs, _at: float) -> None:
    lane.overlap.begin_proof()


def _verify_over(lane: Organs, at: float) -> None:
    lane.recycler.finish(at)


def _stop_ignored(lane: Organs, at: float) -> None:
    body, worker = lane.body, lane.body.active
    if body.terms.may_kill:
        lane.recycler.killed()
        body.say(KillWorker(worker.generation))
        body.arm(TimerName.KILL, KILL_PATIENCE_S)
    else:
        _stuck(lane, at, f"worker {worker.pid} ignores its stop signal; `kill -9 {worker.pid}` frees the lane")


def _kill_ignored(lane: Organs, at: float) -> None:
    _stuck(lane, at, f"worker {lane.body.active.pid} does not end even by SIGKILL; the host may need a restart")


def _stuck(lane: Organs, at: float, reason: str) -> None:
    lane.body.enter(_S.BLOCKED, at, reason)
    lane.body.close_gate(reason)


def _back_off_over(lane: Organs, at: float) -> None:
    lane.body.begin_start(at, "a new start after a pause")


def _retire_late(lane: Organs, at: float) -> None:
    lane.overlap.retire_ran_out(at)


def _remedy_waited(lane: Organs, at: float) -> None:
    lane.relieve(lane.remedies.time_passed(at), at)


_ALL = frozenset(LaneState)

WAITS: dict[TimerName, Wait] = {
    TimerName.ROOM: Wait(SERVES | {_S.STARTING}, _no_room),
    TimerName.START: Wait(SERVES | {_S.STARTING}, _start_late),
    TimerName.WARM: Wait(frozenset({_S.WARMING}), _warm_late),
    TimerName.CANARY: Wait(SERVES | {_S.WARMING}, _canary_due),
    TimerName.CANARY_HOLD: Wait(SERVES, _canary_hold_over),
    TimerName.WAIT_IDLE: Wait(SERVES, _idle_wait_over),
    TimerName.DRAIN: Wait(frozenset({_S.DRAINING}), _drain_late),
    TimerName.CUT: Wait(frozenset({_S.DRAINING}), _abort_drain),
    TimerName.PROOF: Wait(SERVES, _proof_disturbed),
    TimerName.VERIFY: Wait(_ALL, _verify_over),
    TimerName.STOP: Wait(frozenset({_S.STOPPING}), _stop_ignored),
    TimerName.KILL: Wait(frozenset({_S.STOPPING}), _kill_ignored),
    TimerName.BACK_OFF: Wait(frozenset({_S.BACKING_OFF}), _back_off_over),
    TimerName.RETIRE: Wait(_ALL, _retire_late),
    TimerName.RETRY: Wait(SERVES, _proof_retried),
    TimerName.REMEDY: Wait(SERVES, _remedy_waited),
}
"""Total: every timer a lane can arm."""
