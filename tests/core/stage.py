"""A stage for one lane: it performs the lane's commands as a well-behaved world would, in time that is only a number.

A test moves time, sends requests and breaks things; the stage keeps what really happened (processes alive, the gate,
requests in flight) apart from what the lane believes, so that the two can be compared.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from itertools import count

from supervisor.core.account.record import RecycleRecord
from supervisor.core.lane import commands as cmd
from supervisor.core.lane import events as ev
from supervisor.core.lane.events import RemedyAnswer
from supervisor.core.lane.lane import Lane
from supervisor.core.samples import Purpose, Sample, Void
from supervisor.core.speed.cadence import Cadence
from supervisor.core.speed.lane_judge import LaneJudge
from supervisor.core.states import GateMode, LaneState
from supervisor.core.terms import LaneTerms, RemedyName, TimerName, Wish

FRESH_TOK_S = 60.0


@dataclass
class World:
    """How the stage's world behaves; a test changes it as it goes."""

    start_s: float = 3.0
    stop_s: float = 0.5
    canary_s: float = 1.0
    ignores_term: bool = False
    dies_at_start: bool = False
    never_ready: bool = False
    has_room: bool = True
    tok_s: float = FRESH_TOK_S
    """Decode rate of every worker, unless its generation is in ``tok_s_of``."""
    tok_s_of: dict[int, float] = field(default_factory=dict)
    tok_s_at: dict[tuple[int, int], float] = field(default_factory=dict)
    """The same of one generation at one prompt size."""
    void: Void | None = None
    remedies: dict[RemedyName, float | RemedyAnswer] = field(default_factory=dict)
    """What each does: the rate of the worker after it, or its answer where it does nothing. Absent if not here."""
    remedy_s: float = 0.5
    slot_s: float = 0.0
    """Until the fleet lets the lane recycle."""


class Stage:
    """Plays the runner, the gate and the processes of one lane."""

    def __init__(self, terms: LaneTerms | None = None, world: World | None = None, wish: Wish = Wish.RUNNING) -> None:
        self.world = world or World()
        self.terms = terms or LaneTerms()
        self.lane = Lane("stage", self.terms, LaneJudge(self.terms), Cadence(self.terms.canary), wish)
        self.at = 0.0
        self.alive: set[int] = set()
        self.gate = GateMode.SHUT
        self.gate_generation: int | None = None
        self.holds_others = False
        """Whether requests of other lanes wait for a canary of this one."""
        self.inflight: dict[int, int] = {}
        self.records: list[RecycleRecord] = []
        self.intents: list[RecycleRecord] = []
        self.states: list[LaneState] = [self.lane.state]
        self.notes: list[str] = []
        self.asked: list[RemedyName] = []
        """Remedies that the worker was asked for."""
        self.cut = 0
        self.most_alive = 0
        self._wants_idle = False
        self._awaiting_room: set[int] = set()
        self._unborn: set[int] = set()
        self._timers: dict[TimerName, int] = {}
        self._agenda: list[tuple[float, int, ev.Event]] = []
        self._order = count()

    # ---- what a test does ----

    def tell(self, event: ev.Event) -> None:
        """Hand one event to the lane and perform what it says."""
        for command in self.lane.handle(event):
            self._perform(command)
        if self.states[-1] is not self.lane.state:
            self.states.append(self.lane.state)
        self.most_alive = max(self.most_alive, len(self.alive))

    def run(self, seconds: float) -> None:
        """Let time pass, and everything that comes due in it."""
        until = self.at + seconds
        while self._agenda and self._agenda[0][0] <= until:
            self.at, order, event = heapq.heappop(self._agenda)
            if isinstance(event, ev.TimerFired) and self._timers.get(event.name) != order:
                continue
            self._happen(event)
        self.at = until

    def start(self) -> None:
        """Start the lane and let it come to serve."""
        self.tell(ev.StartAsked(self.at))
        self.run(60.0)

    def begin_request(self) -> bool:
        """A client's request; whether it was admitted."""
        if self.gate is not GateMode.OPEN or self.gate_generation is None:
            if self.gate is GateMode.HELD:
                self.tell(ev.RequestHeld(self.at))
            return False
        self.inflight[self.gate_generation] = self.inflight.get(self.gate_generation, 0) + 1
        return True

    def end_request(self, generation: int) -> None:
        """A request in flight ends."""
        self.inflight[generation] -= 1
        self._look_for_emptiness(generation)

    def kill_worker(self) -> None:
        """The active worker dies by itself."""
        worker = self.lane.body.workers.active
        if worker and worker.generation in self.alive:
            self._exit(worker.generation, signal="SIGKILL")

    def kill_generation(self, generation: int) -> None:
        """Any worker dies by itself."""
        if generation in self.alive:
            self._exit(generation, signal="SIGKILL")

    # ---- what the world does ----

    def _later(self, after: float, event_of: ev.Event) -> int:
        order = next(self._order)
        heapq.heappush(self._agenda, (self.at + after, order, event_of))
        return order

    def _happen(self, event: ev.Event) -> None:
        match event:
            case ev.WorkerReady(generation=generation) if generation not in self.alive:
                return
            case ev.WorkerExited(generation=generation):
                if generation not in self.alive | self._unborn:
                    return
                self._unborn.discard(generation)
                self._exit(generation)
                return
            case ev.RoomFound(generation=generation):
                if generation not in self._awaiting_room:
                    return
                if not self.world.has_room:
                    self._later(1.0, ev.RoomFound(self.at + 1.0, generation))
                    event = ev.RoomLacked(self.at, generation, "no memory")
                else:
                    self._awaiting_room.discard(generation)
        self.tell(event)

    def _exit(self, generation: int, signal: str | None = None) -> None:
        self.alive.discard(generation)
        self.inflight[generation] = 0
        self.tell(ev.WorkerExited(self.at, generation, None if signal else 0, signal))

    def _perform(self, command: cmd.Command) -> None:  # noqa: C901, PLR0912 - one case a command
        match command:
            case cmd.AwaitRoom(generation=generation):
                self._awaiting_room.add(generation)
                self._later(0.0, ev.RoomFound(self.at, generation))
            case cmd.SpawnWorker(generation=generation):
                self._spawn(generation)
            case cmd.StopWorker(generation=generation):
                self._stop(generation)
            case cmd.KillWorker(generation=generation):
                self._later(0.1, ev.WorkerExited(self.at + 0.1, generation, None, "SIGKILL"))
            case cmd.OpenGate(generation=generation):
                before, self.gate_generation, self.gate = self.gate_generation, generation, GateMode.OPEN
                self.holds_others = False
                if before is not None and before != generation:
                    self._look_for_emptiness(before)
                self._look_for_idleness()
            case cmd.HoldGate() | cmd.RefuseGate():
                self.gate = GateMode.HELD if isinstance(command, cmd.HoldGate) else GateMode.REFUSING
                self.holds_others = isinstance(command, cmd.HoldGate) and command.is_for_canary
                if self.gate_generation is not None:
                    self._look_for_emptiness(self.gate_generation)
            case cmd.WatchIdle():
                self._wants_idle = True
                self._look_for_idleness()
            case cmd.CutRequests(generation=generation, only_stalled=only_stalled):
                if not only_stalled:
                    self.cut += self.inflight.get(generation, 0)
                    self.inflight[generation] = 0
                    self._look_for_emptiness(generation)
            case cmd.RunCanary():
                self._canary(command)
            case cmd.ApplyRemedy():
                self._remedy(command)
            case cmd.ArmTimer(name=name, after_s=after_s):
                self._timers[name] = self._later(after_s, ev.TimerFired(self.at + after_s, name))
            case cmd.DisarmTimer(name=name):
                self._timers.pop(name, None)
            case cmd.AskRecycleSlot():
                self._later(self.world.slot_s, ev.RecycleSlotGranted(self.at + self.world.slot_s))
            case cmd.WriteIntent(record=record):
                self.intents.append(record)
            case cmd.WriteRecord(record=record):
                self.records.append(record)
            case cmd.Note(text=text):
                self.notes.append(text)

    def _spawn(self, generation: int) -> None:
        self.alive.add(generation)
        self._later(0.0, ev.WorkerSpawned(self.at, generation, 1000 + generation, 9000 + generation))
        if self.world.dies_at_start:
            self._later(0.2, ev.WorkerExited(self.at + 0.2, generation, 1))
        elif not self.world.never_ready:
            self._later(self.world.start_s, ev.WorkerReady(self.at + self.world.start_s, generation))

    def _stop(self, generation: int) -> None:
        if generation in self._awaiting_room:
            self._awaiting_room.discard(generation)
            self._unborn.add(generation)
            self._later(0.0, ev.WorkerExited(self.at, generation))
        elif not self.world.ignores_term:
            self._later(self.world.stop_s, ev.WorkerExited(self.at + self.world.stop_s, generation, 0))

    def _remedy(self, command: cmd.ApplyRemedy) -> None:
        self.asked.append(command.name)
        told = self.world.remedies.get(command.name, RemedyAnswer.ABSENT)
        answer = told if isinstance(told, RemedyAnswer) else RemedyAnswer.DONE
        if not isinstance(told, RemedyAnswer):
            self.world.tok_s_of[command.generation] = told
        took = self.world.remedy_s
        self._later(took, ev.RemedyApplied(self.at + took, command.generation, command.name, answer, took))

    def _canary(self, command: cmd.RunCanary) -> None:
        busy = sum(self.inflight.values()) > 0
        void = self.world.void or (Void.LANE_BUSY if busy and command.purpose is not Purpose.VERIFY else None)
        usual = self.world.tok_s_of.get(command.generation, self.world.tok_s)
        rate = None if void else self.world.tok_s_at.get((command.generation, command.prompt_tokens), usual)
        took = 0.0 if void else self.world.canary_s
        worker = self.lane.body.workers.find(command.generation)
        sample = Sample(
            at=self.at + took,
            wall=self.at + took,
            generation=command.generation,
            prompt_tokens=command.prompt_tokens,
            purpose=command.purpose,
            decode_tok_s=rate,
            void=void,
            tokens=64,
            took_s=took,
            worker_age_s=worker.uptime_s(self.at) if worker else 0.0,
        )
        self._later(took, ev.SampleTaken(self.at + took, command.generation, sample))

    def _look_for_emptiness(self, generation: int) -> None:
        is_turned_away = self.gate is not GateMode.OPEN or self.gate_generation != generation
        if is_turned_away and self.inflight.get(generation, 0) == 0:
            self._later(0.0, ev.GateEmptied(self.at, generation))
        self._look_for_idleness()

    def _look_for_idleness(self) -> None:
        is_idle = self.gate is GateMode.OPEN and sum(self.inflight.values()) == 0
        if self._wants_idle and is_idle:
            self._wants_idle = False
            self._later(0.0, ev.GateIdled(self.at))
