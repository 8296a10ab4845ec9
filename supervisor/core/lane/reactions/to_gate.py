"""What the gate sees, and what the fleet allows."""

from __future__ import annotations

from supervisor.core.lane.body import Goal
from supervisor.core.lane.events import GateEmptied, GateIdled, RecycleSlotGranted, RequestHeld, RoomWanted, StreamEnded
from supervisor.core.lane.organs import Organs
from supervisor.core.states import SERVES, LaneState
from supervisor.core.terms import TimerName


def emptied(lane: Organs, event: GateEmptied) -> None:
    """Nothing is in flight on the active worker, and the gate is turned away from it."""
    body = lane.body
    if body.state in SERVES:
        if not (lane.overlap.gate_emptied() or lane.remedies.gate_emptied(event.at)):
            lane.measurer.gate_emptied(event.at)
        return
    match body.goal:
        case Goal.DRAIN:
            body.disarm(TimerName.DRAIN)
            body.goal = None
            body.enter(LaneState.DRAINED, event.at, body.reason)
            if body.owed:
                lane.recycle(event.at, *body.owed)
        case Goal.RECYCLE:
            lane.recycler.stop_old(event.at)
        case Goal.STOP | Goal.UNLOAD:
            body.stop_active(event.at, body.goal, body.reason, hands_over=True)
        case _:
            pass  # a restart or retry does not drain: its worker never served


def idled(lane: Organs, event: GateIdled) -> None:
    """The idle moment that a recycle or a remedy waits for."""
    lane.remedies.gate_idled(event.at)
    lane.last_look.idled(event.at)


def held(lane: Organs, event: RequestHeld) -> None:
    """Somebody wants an unloaded lane."""
    lane.body.begin_start(event.at, "a request asked for it")


def stream_ended(lane: Organs, event: StreamEnded) -> None:
    """One more rate of a client's stream."""
    lane.measurer.streamed(event.stream, event.at)


def room_wanted(lane: Organs, event: RoomWanted) -> None:
    """Another lane needs the memory more: unload, if this one is on demand and nothing is under way."""
    body = lane.body
    if body.terms.is_on_demand and lane.recycler.under_way is None:
        lane.stand_down()
        body.drain(event.at, Goal.UNLOAD, f"makes room for {event.by}", body.terms.drain_timeout_s)


def slot_granted(lane: Organs, event: RecycleSlotGranted) -> None:
    """The fleet lets this lane recycle now."""
    lane.overlap.slot_granted(event.at)
