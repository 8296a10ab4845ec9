"""A lane that unloads at the very moment a request comes: whichever is first, the request is served.

The lane machine and the gate are the real ones; between them is a queue, as in the runner, whose events wait for as
long as chance will have it. The worker is two events.
"""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass, field

from supervisor.core.lane import commands as cmd
from supervisor.core.lane import events as ev
from supervisor.core.lane.lane import Lane
from supervisor.core.speed.cadence import Cadence
from supervisor.core.speed.lane_judge import LaneJudge
from supervisor.core.states import LaneState
from supervisor.core.terms import LaneTerms, TimerName
from supervisor.shell.front.gate import Gate
from supervisor.shell.front.ticket import Ticket
from supervisor.shell.front.upstream import Upstream

RACES = 10_000
TERMS = LaneTerms(is_on_demand=True, idle_unload_s=1.0)


@dataclass
class Stage:
    """One lane with its gate, and all that may happen next."""

    lane: Lane
    gate: Gate
    at: float = 0.0
    queue: deque[ev.Event] = field(default_factory=deque)
    worker: list[ev.Event] = field(default_factory=list)
    """What the worker will come to say, in this order."""

    def take_one(self) -> None:
        self.at += 0.01
        for command in self.lane.handle(self.queue.popleft()):
            self.perform(command)

    def perform(self, command: cmd.Command) -> None:
        match command:
            case cmd.AwaitRoom(generation=generation):
                self.worker.append(ev.RoomFound(self.at, generation))
            case cmd.SpawnWorker(generation=generation):
                self.worker += [ev.WorkerSpawned(self.at, generation, 100, 200), ev.WorkerReady(self.at, generation)]
            case cmd.StopWorker(generation=generation):
                self.worker = [ev.WorkerExited(self.at, generation, 0)]
            case cmd.OpenGate(generation=generation):
                self.gate.open(Upstream(generation, "http://127.0.0.1:1"))
            case cmd.HoldGate(reason=reason):
                self.gate.hold(reason)
            case cmd.RefuseGate(reason=reason, retry_after_s=retry_after_s):
                self.gate.refuse(reason, retry_after_s)
            case cmd.ArmTimer(name=TimerName.WARM):
                self.worker.append(ev.TimerFired(self.at, TimerName.WARM))
            case _:
                pass

    def measure(self) -> None:
        """The reading after which an idle lane unloads."""
        active = self.lane.body.workers.active
        if active and self.lane.state is LaneState.SERVING:
            idle_s = 2.0 if self.gate.idle_since is not None else 0.0
            self.queue.append(
                ev.WorkerMeasured(
                    self.at, active.generation, memory_bytes=1, requests=0, generated_tokens=0, idle_s=idle_s
                )
            )


def new_stage() -> Stage:
    lane = Lane("worker", TERMS, LaneJudge(TERMS), Cadence(TERMS.canary))
    stage = Stage(lane, Gate(hold_timeout_s=3600.0))
    stage.gate.on_emptied = lambda generation: stage.queue.append(ev.GateEmptied(stage.at, generation))
    stage.gate.on_held = lambda: stage.queue.append(ev.RequestHeld(stage.at))
    stage.queue.append(ev.StartAsked(0.0))
    return stage


async def test_ten_thousand_requests_that_race_an_unload_are_all_served() -> None:
    dice = random.Random(5)
    stage = new_stage()
    unloads = caught = 0
    for number in range(RACES):
        ticket: Ticket | None = None
        patience = dice.randrange(12)
        for step in range(200):
            if step == patience:
                caught += stage.lane.state in (LaneState.DRAINING, LaneState.STOPPING)
                ticket = stage.gate.enter(str(number))
            if ticket is not None and ticket.upstream is not None:
                break
            choices = [stage.take_one] * bool(stage.queue) * 3 + [stage.measure]
            if stage.worker:
                choices.append(lambda: stage.queue.append(stage.worker.pop(0)))
            before = stage.lane.state
            dice.choice(choices)()
            unloads += before is not LaneState.UNLOADED and stage.lane.state is LaneState.UNLOADED
        assert ticket is not None
        assert ticket.upstream is not None, f"request {number} is stuck: the lane is {stage.lane.state}"
        stage.gate.leave(ticket)
    assert unloads > RACES / 20
    assert caught > RACES / 20
