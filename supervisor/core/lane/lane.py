"""One lane's life: events in, commands out, and nothing else changes it.

``TABLE`` says for each event in which states it is acted upon, and what it means in all others: it comes too late or
asks for nothing (``IGNORED``), or it cannot happen (``IMPOSSIBLE``), which is a fault of this program and raises. An
event about a worker that is not the active one goes to ``to_neighbour``, whatever the state.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, NamedTuple

from supervisor.core.lane import events as ev
from supervisor.core.lane.body import Goal, LaneBody
from supervisor.core.lane.commands import Command
from supervisor.core.lane.organs import Organs
from supervisor.core.lane.reactions import to_canary, to_gate, to_neighbour, to_person, to_time, to_worker
from supervisor.core.speed.cadence import Cadence
from supervisor.core.speed.judge import Judge
from supervisor.core.states import HAS_WORKER, NEXT_ACTION, SERVES, LaneState
from supervisor.core.terms import LaneTerms, Wish
from supervisor.core.workers import Role
from supervisor.errors import ImpossibleEventError

_S = LaneState
_ALL = frozenset(LaneState)
_NONE: frozenset[LaneState] = frozenset()


class Otherwise(Enum):
    """What an event means in a state that does not act on it."""

    IGNORED = "ignored"
    IMPOSSIBLE = "impossible"


class Row(NamedTuple):
    """An event's line of the table."""

    react: Callable[[Organs, Any], None]
    acts_in: frozenset[LaneState]
    impossible_in: frozenset[LaneState] = _NONE

    def meaning(self, state: LaneState) -> str:
        """`acts`, `ignored` or `impossible`."""
        if state in self.acts_in:
            return "acts"
        return str((Otherwise.IMPOSSIBLE if state in self.impossible_in else Otherwise.IGNORED).value)


_SERVED = SERVES | {_S.DRAINING, _S.DRAINED}
_WITHOUT_WORKER = frozenset({_S.STOPPED, _S.UNLOADED, _S.FAILED, _S.BACKING_OFF})

TABLE: dict[type[ev.Event], Row] = {
    ev.StartAsked: Row(to_person.start, _WITHOUT_WORKER | {_S.DRAINING, _S.STOPPING}),
    ev.StopAsked: Row(to_person.stop, _ALL),
    ev.DrainAsked: Row(to_person.drain, HAS_WORKER - {_S.DRAINED, _S.STOPPING} | {_S.BACKING_OFF, _S.BLOCKED}),
    ev.ResumeAsked: Row(to_person.resume, HAS_WORKER - {_S.STOPPING} | {_S.BACKING_OFF, _S.BLOCKED}),
    ev.RecycleAsked: Row(to_person.recycle, _SERVED),
    ev.ProbeAsked: Row(to_person.probe, SERVES),
    ev.BaselineForgotten: Row(to_person.forget_baseline, _ALL),
    ev.BaselineRecalled: Row(to_person.recall_baseline, _ALL),
    ev.RoomWanted: Row(to_gate.room_wanted, SERVES),
    ev.TermsChanged: Row(to_person.change_terms, _ALL),
    ev.WindowChanged: Row(to_person.change_window, _ALL),
    ev.RoomFound: Row(to_worker.room_found, frozenset({_S.STARTING, _S.BLOCKED}), _SERVED | {_S.WARMING}),
    ev.RoomLacked: Row(to_worker.room_lacked, frozenset({_S.STARTING, _S.BLOCKED}), _SERVED | {_S.WARMING}),
    ev.WorkerSpawned: Row(to_worker.spawned, frozenset({_S.STARTING, _S.STOPPING, _S.BLOCKED}), _SERVED | {_S.WARMING}),
    ev.SpawnFailed: Row(to_worker.spawn_failed, frozenset({_S.STARTING, _S.STOPPING}), _SERVED | {_S.WARMING}),
    ev.WorkerReady: Row(to_worker.ready, frozenset({_S.STARTING, _S.BLOCKED}), _SERVED | {_S.WARMING}),
    ev.StopSent: Row(to_worker.stop_sent, frozenset({_S.STOPPING})),
    ev.WorkerExited: Row(to_worker.exited, HAS_WORKER | {_S.BLOCKED}),
    ev.WorkerHung: Row(to_worker.hung, _SERVED | {_S.STARTING, _S.WARMING, _S.BLOCKED}),
    ev.WorkerMeasured: Row(to_worker.measured, HAS_WORKER | {_S.BLOCKED}),
    ev.RequestPoisoned: Row(to_worker.poisoned, _ALL),
    ev.GateEmptied: Row(to_gate.emptied, SERVES | {_S.DRAINING}),
    ev.GateIdled: Row(to_gate.idled, SERVES),
    ev.RequestHeld: Row(to_gate.held, frozenset({_S.UNLOADED})),
    ev.StreamEnded: Row(to_gate.stream_ended, SERVES),
    ev.RecycleSlotGranted: Row(to_gate.slot_granted, _ALL),
    ev.SampleTaken: Row(to_canary.sampled, SERVES | {_S.WARMING}),
    ev.RemedyApplied: Row(to_canary.remedied, SERVES),
    ev.RecordWritten: Row(to_worker.record_written, _ALL),
    ev.TimerFired: Row(to_time.fired, _ALL),
}
"""Total: every event there is."""

WISHES = (ev.StartAsked, ev.DrainAsked, ev.ResumeAsked, ev.RecycleAsked, ev.ProbeAsked, ev.TermsChanged)
"""What a lane may be asked for as long as it stays; a stop it hears always."""


class Lane:
    """The lane machine. ``handle`` is its only way in."""

    def __init__(self, name: str, terms: LaneTerms, judge: Judge, cadence: Cadence, wish: Wish = Wish.RUNNING) -> None:
        self.body = LaneBody(name, terms, wish)
        self.organs = Organs(self.body, judge, cadence)

    @property
    def state(self) -> LaneState:
        """Where the lane is in its life."""
        return self.body.state

    @property
    def next_action(self) -> str:
        """What comes next, in words."""
        return NEXT_ACTION[self.body.state]

    def handle(self, event: ev.Event) -> list[Command]:
        """Take one event, change, and say what is to be done, in order.

        Raises:
            ImpossibleEventError: the event cannot happen in this state.
            ImpossibleTransitionError: a step that ``SUCCESSORS`` does not have.
        """
        if isinstance(event, ev.StartAsked) and event.is_return:
            self.body.is_leaving = False
        if isinstance(event, ev.WorkerEvent):
            role = self.body.workers.role(event.generation)
            if role is not Role.ACTIVE:
                to_neighbour.react(self.organs, event, role)
                return self.body.take_commands()
        meaning = self._meaning(event)
        if meaning == "acts":
            TABLE[type(event)].react(self.organs, event)
        elif meaning == "impossible":
            raise ImpossibleEventError(self.body.name, self.state, type(event).__name__)
        return self.body.take_commands()

    def _meaning(self, event: ev.Event) -> str:
        if self._deafness(event):
            return str(Otherwise.IGNORED.value)
        return TABLE[type(event)].meaning(self.state)

    def _deafness(self, event: ev.Event) -> str | None:
        """Why the lane does not hear a wish that its state would allow."""
        body = self.body
        if body.is_leaving and isinstance(event, WISHES):
            return "it goes for good"
        if not isinstance(event, ev.RecycleAsked):
            return None
        if self.state is _S.DRAINING and body.goal is not Goal.RECYCLE:
            return f"it is being emptied: {body.reason}"
        return None if body.terms.can_restart else "someone else runs its server, and it has no restart_command"

    def objection(self, event: ev.Event) -> str | None:
        """Why a person's wish means nothing now; None if it does."""
        if self._meaning(event) == "acts":
            return None
        return self._deafness(event) or f"the lane is {self.state}: {self.body.reason}"
