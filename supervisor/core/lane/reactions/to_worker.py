"""What happens to the active worker, from finding room for it to its exit."""

from __future__ import annotations

import re
from typing import NamedTuple

from supervisor.core.account.cause import Reading
from supervisor.core.account.record import Outcome
from supervisor.core.lane.body import Goal, LaneBody
from supervisor.core.lane.commands import SpawnWorker
from supervisor.core.lane.events import (
    RecordWritten,
    RequestPoisoned,
    RoomFound,
    RoomLacked,
    SpawnFailed,
    StopSent,
    WorkerExited,
    WorkerHung,
    WorkerMeasured,
    WorkerReady,
    WorkerSpawned,
)
from supervisor.core.lane.organs import Organs
from supervisor.core.states import SERVES, LaneState
from supervisor.core.terms import Replace, TimerName, Trigger

_S = LaneState
NUMBER = re.compile(r"\d+")


def room_found(lane: Organs, event: RoomFound) -> None:
    """It fits: spawn it. A server that only its owner can start is not waited for, but looked at."""
    body = lane.body
    body.disarm(TimerName.ROOM)
    body.say(SpawnWorker(event.generation))
    if body.state is _S.BLOCKED and not body.terms.can_restart:
        return
    body.enter(_S.STARTING, event.at, "the worker loads")
    body.arm(TimerName.START, body.terms.start_timeout_s)


def room_lacked(lane: Organs, event: RoomLacked) -> None:
    """It does not fit yet. Waiting for other lanes to start is no fault, so its deadline moves on."""
    lane.body.reason = event.reason
    if event.is_fleet:
        lane.body.arm(TimerName.ROOM, lane.body.terms.memory_timeout_s)


def spawned(lane: Organs, event: WorkerSpawned) -> None:
    """Its process runs."""
    worker = lane.body.workers.find(event.generation)
    if worker:
        worker.pid, worker.port, worker.spawned_at = event.pid, event.port, event.at


def spawn_failed(lane: Organs, event: SpawnFailed) -> None:
    """Its command cannot be executed: no use in trying again."""
    if lane.body.state is _S.STOPPING:
        _gone(lane, event.at)
        return
    lane.recycler.give_up(event.at, Outcome.FAILED, event.reason)
    lane.body.rest(_S.FAILED, event.at, event.reason)


def ready(lane: Organs, event: WorkerReady) -> None:
    """It answers."""
    if lane.body.state is _S.BLOCKED:
        if not lane.body.is_blocked_on_owner:
            return  # it was told to stop meanwhile
        lane.body.enter(_S.STARTING, event.at, "the server answers again")
    lane.body.disarm(TimerName.START)
    lane.warm(event.at)


def stop_sent(lane: Organs, event: StopSent) -> None:
    """The time for its goodbye begins only now, and so does what the record says it took."""
    body = lane.body
    body.active.stop_sent_at = event.at
    body.arm(TimerName.STOP, body.active.stop_patience_s(body.terms.stop_timeout_s))
    lane.recycler.stop_sent(event.at)


def exited(lane: Organs, event: WorkerExited) -> None:
    """Its process ended: as wanted, or by itself."""
    body = lane.body
    if body.state in (_S.STOPPING, _S.BLOCKED):
        _gone(lane, event.at, event.trouble)
    elif body.state is _S.DRAINING and body.goal in (Goal.STOP, Goal.UNLOAD):
        body.stop_active(event.at, body.goal, body.reason)
        _gone(lane, event.at)
    elif event.restart:
        lane.crash(event.at, f"its owner restarted it: {event.restart}", Trigger.OPERATOR)
    else:
        how = f"killed by {event.signal}" if event.signal else f"exit code {event.code}"
        lane.crash(event.at, f"the worker died by itself ({how})")


def _gone(lane: Organs, at: float, trouble: str = "") -> None:
    """A worker that was told to stop is gone: on to what it was stopped for."""
    body = lane.body
    body.disarm(TimerName.STOP, TimerName.KILL)
    lane.recycler.old_gone(at)
    is_hung = lane.recycler.is_about(Trigger.HUNG)
    if trouble and body.goal is Goal.RECYCLE:
        lane.recycler.give_up(at, Outcome.FAILED, trouble)
    match body.goal:
        case Goal.STOP:
            body.rest(_S.STOPPED, at, body.reason)
        case Goal.UNLOAD:
            body.rest(_S.UNLOADED, at, body.reason)
        case Goal.RETRY:
            body.crashes.add(at, body.active.generation)
            lane.try_again(at, body.reason)
        case Goal.RECYCLE if is_hung and not body.terms.can_restart:
            lane.recycler.give_up(at, Outcome.FAILED, "someone else runs the server, and there is no restart_command")
            body.wait_for_owner(at, body.reason)
        case None if not body.terms.can_restart:
            body.wait_for_owner(at, "the server is gone")
        case Goal.RECYCLE if is_hung and body.crashes.recent(at) > 1:
            lane.try_again(at, body.reason)  # one hang is an accident, the next one may be a loop
        case _:
            body.begin_start(at, body.reason)


def hung(lane: Organs, event: WorkerHung) -> None:
    """It is alive and gets nowhere; one that was told to stop need not."""
    if lane.body.state is _S.BLOCKED and not lane.body.is_blocked_on_owner:
        return
    lane.replace_hung(event.at, event.evidence)


def measured(lane: Organs, event: WorkerMeasured) -> None:
    """New readings: they may say that it is too big, has done its share, or is not needed now."""
    body, terms, worker = lane.body, lane.body.terms, lane.body.active
    body.life.read(event.generation, Reading(event.memory_bytes, event.host), event.own_words)
    worker.memory_bytes = event.memory_bytes
    worker.requests, worker.generated_tokens = event.requests, event.generated_tokens
    body.workers.peak_memory_bytes = max(body.workers.peak_memory_bytes, event.memory_bytes)
    if body.state not in SERVES or lane.recycler.under_way:
        return
    if body.owed and body.allowance.may_try_again(event.at):
        lane.recycle(event.at, *body.owed, before=lane.judge.verdict)
        return
    wanted = _too_big(lane, event) or _budget_spent(lane, event) or _at_its_best_age(lane, event)
    if wanted is None:
        body.objection = ""
    elif _recycled(lane, event.at, wanted):
        return
    if terms.idle_unload_s is not None and event.idle_s >= terms.idle_unload_s:
        lane.stand_down()
        body.drain(event.at, Goal.UNLOAD, f"idle for {event.idle_s:.0f} s", terms.drain_timeout_s)


class Wanted(NamedTuple):
    """A recycle that a reading speaks for: ``limit`` says which was passed, ``reason`` by how much."""

    trigger: Trigger
    limit: str
    reason: str


def _too_big(lane: Organs, event: WorkerMeasured) -> Wanted | None:
    limit = lane.body.terms.memory_limit_bytes
    if limit is None or event.memory_bytes <= limit:
        return None
    passed = f"over memory.limit ({limit / 1e9:.1f} GB)"
    return Wanted(Trigger.MEMORY, passed, f"its memory of {event.memory_bytes / 1e9:.1f} GB is {passed}")


def _budget_spent(lane: Organs, event: WorkerMeasured) -> Wanted | None:
    budget = lane.body.terms.recycle
    spent = (
        (budget.after_generated_tokens, event.generated_tokens, "generated tokens"),
        (budget.after_requests, event.requests, "requests"),
        (budget.after_uptime_s, lane.body.active.uptime_s(event.at), "seconds of uptime"),
    )
    for limit, used, unit in spent:
        if limit is not None and used >= limit:
            passed = "recycle.after is reached"
            return Wanted(Trigger.BUDGET, passed, f"{passed}: {used:.0f} {unit} of {limit:.0f}")
    return None


def _at_its_best_age(lane: Organs, event: WorkerMeasured) -> Wanted | None:
    """Where nobody would notice: the worker may still be nearly as fast as ever."""
    best_age_s, idle_for_s = lane.best_age_s(), lane.body.terms.canary.idle_for_s
    if best_age_s is None or lane.body.active.uptime_s(event.at) < best_age_s or event.idle_s < idle_for_s:
        return None
    return Wanted(Trigger.AGE, "it has reached its best age", lane.judge.ageing.words)


def _recycled(lane: Organs, at: float, wanted: Wanted) -> bool:
    """Begin it, or say why not."""
    body = lane.body
    objection = body.allowance.objection(
        at,
        body.terms.recycle,
        replace=Replace.IN_PLACE if wanted.trigger is Trigger.MEMORY else body.replace,
        uptime_s=body.active.uptime_s(at),
        is_window_open=body.is_window_open,
        trigger=wanted.trigger,
    )
    if objection is None:
        lane.recycle(at, wanted.trigger, wanted.reason, before=lane.judge.verdict)
    else:
        _object(body, f"{wanted.limit}; not recycled: {objection}")
    return objection is None


def _object(body: LaneBody, words: str) -> None:
    """Said anew only if more than its numbers has changed, for readings come every other second."""
    if NUMBER.sub("", words) != NUMBER.sub("", body.objection):
        body.objection = words


def record_written(lane: Organs, event: RecordWritten) -> None:
    """The papers of a recycle are complete: what it cost in prompts to be read again."""
    lane.body.cost.lost(event.prefix_lost_tokens)


def poisoned(lane: Organs, event: RequestPoisoned) -> None:
    """A request, not the worker, was to blame for two deaths."""
    lane.body.crashes.forgive(event.generations)
    lane.body.note(f"request {event.request_id} was in flight at two worker deaths and is refused")
