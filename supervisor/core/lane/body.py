"""What a lane consists of, and the few verbs by which anything about it changes.

Everything that decides for a lane (``lane``, ``recycler``, ``measurer``) acts through these verbs, so each state is
entered in one way, with its gate, its timers and its words.
"""

from __future__ import annotations

from enum import StrEnum

from supervisor.core.account.cause import Life
from supervisor.core.lane.commands import (
    ArmTimer,
    AwaitRoom,
    CancelCanary,
    Command,
    DisarmTimer,
    HoldGate,
    KeepWish,
    Note,
    OpenGate,
    RefuseGate,
    StopWorker,
)
from supervisor.core.recycle.policy import CrashHistory, RecycleAllowance
from supervisor.core.recycle.remedy_memory import RemedyMemory
from supervisor.core.recycle.worth import RecycleCost
from supervisor.core.states import GATE_BY_STATE, SUCCESSORS, GateMode, LaneState
from supervisor.core.terms import LaneTerms, Replace, TimerName, Trigger, Wish
from supervisor.core.workers import Worker, Workers
from supervisor.errors import ImpossibleTransitionError

RESPAWN_HEADROOM = 1.1
BACK_OFF_JITTER = 0.25
DRAINED_RETRY_AFTER_S = 30.0
KILL_PATIENCE_S = 10.0
"""Even SIGKILL takes a moment where much memory is wired."""


class Goal(StrEnum):
    """What draining and stopping lead to."""

    RECYCLE = "recycle"
    RESTART = "restart"
    """A worker that never served is started again, without having crashed."""
    RETRY = "retry"
    """A start that failed is tried again after the back-off."""
    STOP = "stop"
    DRAIN = "drain"
    UNLOAD = "unload"


class LaneBody:
    """A lane's whole state. Only the lane and its two organs touch it, and only within ``Lane.handle``."""

    def __init__(self, name: str, terms: LaneTerms, wish: Wish = Wish.RUNNING) -> None:
        self.name = name
        self.terms = terms
        self.wish = wish
        self.state = LaneState.STOPPED
        self.since = 0.0
        self.reason = "stopped by a person" if wish is Wish.STOPPED else "the daemon is starting"
        self.goal: Goal | None = None
        self.workers = Workers()
        self.crashes = CrashHistory()
        self.allowance = RecycleAllowance()
        self.objection = ""
        """Why a recycle that the worker's readings speak for does not happen, in words; empty if none is called for."""
        self.remedies = RemedyMemory()
        self.cost = RecycleCost()
        self.life = Life()
        """What was read of the active worker and of the machine."""
        self.is_window_open = True
        self.is_hurried = False
        """A person wants it stopped at once."""
        self.is_leaving = False
        """It goes for good, with its daemon or out of lanes.yaml: nobody can ask it for anything more."""
        self.owed: tuple[Trigger, str] | None = None
        """A recycle that a person or a reload asked for; owed until another worker serves."""
        self.start_took_s = 0.0
        """How long the last start took, from its decision to serving: what a recycle in place costs."""
        self._out: list[Command] = []

    def inherit(self, old: LaneBody) -> None:
        """Take over what a lane has learned and may still spend, where it begins anew after a fault."""
        self.workers.last_generation = old.workers.last_generation
        self.workers.peak_memory_bytes = old.workers.peak_memory_bytes
        self.allowance, self.start_took_s = old.allowance, old.start_took_s
        self.remedies, self.cost = old.remedies, old.cost
        self.is_window_open, self.is_leaving = old.is_window_open, old.is_leaving

    # ---- speaking ----

    def say(self, *commands: Command) -> None:
        """Add to what the lane wants done."""
        self._out.extend(commands)

    def take_commands(self) -> list[Command]:
        """What was said since the last call."""
        said, self._out = self._out, []
        return said

    def arm(self, name: TimerName, after_s: float, jitter: float = 0.0) -> None:
        """Arm a timer; a negative length fires at once."""
        self.say(ArmTimer(name, max(after_s, 0.0), jitter))

    def disarm(self, *names: TimerName) -> None:
        """Disarm timers, armed or not."""
        self.say(*(DisarmTimer(name) for name in names))

    def note(self, text: str) -> None:
        """Write to the daemon's log."""
        self.say(Note(text))

    def keep(self, wish: Wish) -> None:
        """Take up what a person wants, durably."""
        if wish is not self.wish:
            self.wish = wish
            self.say(KeepWish(wish))

    # ---- states ----

    def enter(self, state: LaneState, at: float, reason: str) -> None:
        """Step to ``state``; a step that is not in ``SUCCESSORS`` is a fault of this program."""
        if state is not self.state:
            if state not in SUCCESSORS[self.state]:
                raise ImpossibleTransitionError(self.name, self.state, state, reason)
            self.state = state
            self.since = at
            self.objection = ""
        self.reason = reason

    @property
    def words(self) -> str:
        """The reason of its state, and what else people are to know."""
        return "; ".join(filter(None, (self.reason, self.objection)))

    @property
    def gate(self) -> GateMode:
        """What the lane's state asks of its gate, a person's stop or drain under way included."""
        if self.state is LaneState.DRAINING and self.goal in (Goal.STOP, Goal.DRAIN):
            return GateMode.REFUSING
        if self.state is LaneState.STOPPING and self.goal is Goal.STOP:
            return GateMode.SHUT
        return GATE_BY_STATE[self.state]

    @property
    def active(self) -> Worker:
        """The active worker, in states that have one."""
        if self.workers.active is None:
            raise ImpossibleTransitionError(self.name, self.state, self.state, "there is no active worker")
        return self.workers.active

    @property
    def has_process(self) -> bool:
        """Whether the active worker was spawned and is not known to be gone."""
        return self.workers.active is not None and self.workers.active.spawned_at is not None

    @property
    def is_blocked_on_owner(self) -> bool:
        """Whether it looks for the answer of a server that only its owner can restart."""
        return self.state is LaneState.BLOCKED and self.workers.active is not None and self.workers.active.is_awaited

    @property
    def room_bytes(self) -> int:
        """Memory that must be available before a worker is spawned: the lane's measured peak and a tenth."""
        return int(self.workers.peak_memory_bytes * RESPAWN_HEADROOM)

    @property
    def replace(self) -> Replace:
        """How a planned recycle replaces the worker. Overlap only where two of its measured peak are known to fit."""
        if self.terms.replace is not None:
            return self.terms.replace
        peak = self.workers.peak_memory_bytes
        return Replace.OVERLAP if 0 < 2 * peak <= self.terms.memory_budget_bytes else Replace.IN_PLACE

    # ---- verbs ----

    def begin_start(self, at: float, reason: str) -> None:
        """Start a new active worker: first there must be room for it."""
        worker = self.workers.begin(at)
        self.workers.active = worker
        self.goal = None
        self.is_hurried = False
        self.owed = None
        self.enter(LaneState.STARTING, at, reason)
        self.say(HoldGate(reason), AwaitRoom(worker.generation, self.room_bytes))
        self.arm(TimerName.ROOM, self.terms.memory_timeout_s)

    def wait_for_owner(self, at: float, reason: str) -> None:
        """Only whoever runs the server can help it: look until it answers again, however long that takes."""
        self.begin_start(at, reason)
        self.block_on_owner(at, reason)

    def block_on_owner(self, at: float, reason: str) -> None:
        """The same, of a server that is looked at already."""
        self.enter(LaneState.BLOCKED, at, f"{reason}; someone else runs the server, and there is no restart_command")

    def begin_candidate(self, at: float) -> None:
        """Start a worker beside the active one."""
        self.workers.candidate = self.workers.begin(at)
        self.say(AwaitRoom(self.workers.candidate.generation, self.room_bytes))
        self.arm(TimerName.ROOM, self.terms.memory_timeout_s)

    def drain(self, at: float, goal: Goal, reason: str, due_s: float) -> None:
        """Turn new requests away from the worker and wait for those in flight."""
        self.goal = goal
        self.enter(LaneState.DRAINING, at, reason)
        self.close_gate(reason)
        self.disarm(TimerName.CANARY, TimerName.CANARY_HOLD, TimerName.CUT)
        self.say(CancelCanary())
        self.arm(TimerName.DRAIN, due_s)

    def stop_active(self, at: float, goal: Goal, reason: str, *, hands_over: bool = False) -> None:
        """Send the active worker its stop signal; what follows its exit is ``goal``.

        ``hands_over``: it is well, and may first save its prefix cache for the next one.
        """
        self.goal = goal
        worker = self.active
        worker.stop_sent_at = at
        self.enter(LaneState.STOPPING, at, reason)
        self.close_gate(reason)
        self.disarm(
            TimerName.ROOM,
            TimerName.START,
            TimerName.WARM,
            TimerName.CANARY,
            TimerName.CANARY_HOLD,
            TimerName.DRAIN,
            TimerName.CUT,
        )
        can_save = hands_over and not self.is_hurried and worker.ready_at is not None
        handoff_s = self.terms.handoff_s if can_save else 0.0
        self.say(CancelCanary(), StopWorker(worker.generation, handoff_s, goal in (Goal.STOP, Goal.UNLOAD)))
        self.arm(TimerName.STOP, handoff_s + worker.stop_patience_s(self.terms.stop_timeout_s))

    def hurry(self) -> None:
        """A stop is under way: the signal is due now, whatever the worker would still save."""
        worker = self.active
        self.is_hurried = True
        self.say(StopWorker(worker.generation, is_last=True))
        self.arm(TimerName.STOP, worker.stop_patience_s(self.terms.stop_timeout_s))

    def retire(self, worker: Worker, at: float) -> None:
        """Send a worker that no longer serves its stop signal."""
        worker.stop_sent_at = at
        self.say(StopWorker(worker.generation))
        self.arm(TimerName.RETIRE, worker.stop_patience_s(self.terms.stop_timeout_s))

    def close_gate(self, reason: str) -> None:
        """Hold or refuse, as the state says."""
        match self.gate:
            case GateMode.HELD:
                self.say(HoldGate(reason))
            case GateMode.REFUSING:
                self.say(RefuseGate(reason, DRAINED_RETRY_AFTER_S))
            case _:
                self.say(RefuseGate(reason))

    def serve(self, at: float, reason: str) -> None:
        """Send requests to the active worker, or, if a person drained the lane, go on refusing them."""
        self.disarm(TimerName.WARM, TimerName.DRAIN, TimerName.CUT)
        self.goal = None
        if self.wish is Wish.DRAINED:
            self.enter(LaneState.DRAINED, at, "drained by a person")
            self.close_gate(self.reason)
        else:
            self.enter(LaneState.SERVING, at, reason)
            self.say(OpenGate(self.active.generation))

    def rest(self, state: LaneState, at: float, reason: str) -> None:
        """Stay without a worker: stopped, unloaded, or failed."""
        if self.workers.active and not self.has_process:
            self.say(StopWorker(self.workers.active.generation))
        self.workers.active = None
        self.goal = None
        self.enter(state, at, reason)
        self.close_gate(reason)
        self.disarm(TimerName.ROOM, TimerName.START, TimerName.WARM, TimerName.BACK_OFF, TimerName.STOP, TimerName.KILL)
        self.disarm(TimerName.CANARY, TimerName.CANARY_HOLD, TimerName.DRAIN, TimerName.CUT)

    def back_off(self, at: float, reason: str) -> None:
        """Wait before the next start, longer with each crash of the last minutes."""
        delay = self.crashes.delay_s(at)
        self.workers.active = None
        self.goal = None
        self.enter(LaneState.BACKING_OFF, at, f"{reason}; next start in {delay:.0f} s")
        self.close_gate(self.reason)
        self.disarm(TimerName.START, TimerName.WARM, TimerName.CANARY, TimerName.CANARY_HOLD, TimerName.DRAIN)
        self.arm(TimerName.BACK_OFF, delay, BACK_OFF_JITTER)
