"""Performs the commands of one lane: the table from each command to what it does, and the things it is done with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import structlog

from supervisor.core.lane import commands as cmd
from supervisor.core.lane import events as ev
from supervisor.core.lane.body import LaneBody
from supervisor.core.samples import Sample, Void
from supervisor.core.speed.decode_rate import decode_rate
from supervisor.core.speed.passive import StreamRate
from supervisor.core.states import LaneState
from supervisor.settings import LaneSettings
from supervisor.shell.front.gate import Gate, GateTerms
from supervisor.shell.front.stream_count import StreamCount
from supervisor.shell.front.upstream import Upstream
from supervisor.shell.lane.attendant import Attendant
from supervisor.shell.lane.canary_desk import CanaryDesk
from supervisor.shell.lane.handoff import Handoff
from supervisor.shell.lane.lane_memory import LaneMemory
from supervisor.shell.lane.recycle_desk import RecycleDesk
from supervisor.shell.lane.remedy_desk import RemedyDesk
from supervisor.shell.lane.surroundings import Surroundings
from supervisor.shell.lane.timers import Timers
from supervisor.shell.tasks import Tasks

log = structlog.get_logger(__name__)

BYTES_PER_TOKEN = 4
"""Of a request's body, about; its context is only told in coarse steps."""


class Performer:
    """Whatever it sets going reports back by ``tell``; samples and records pass by ``sampled`` and ``recycled``."""

    def __init__(
        self,
        settings: LaneSettings,
        around: Surroundings,
        tasks: Tasks,
        *,
        tell: Callable[[ev.Event], None],
        sampled: Callable[[Sample], None],
        recycled: Callable[[dict[str, Any]], None],
    ) -> None:
        self.settings = settings
        self.body: LaneBody | None = None
        self.gate = Gate(held=around.held)
        self.gate.terms = gate_terms(settings)
        self.gate.on_emptied = lambda generation: tell(ev.GateEmptied(self._now(), generation))
        self.gate.on_idled = lambda: tell(ev.GateIdled(self._now()))
        self.gate.on_held = lambda: tell(ev.RequestHeld(self._now()))
        self.gate.on_admitted = lambda: around.device.request_arrived(settings.name)
        self.gate.on_poison = lambda request, deaths: tell(ev.RequestPoisoned(self._now(), request, deaths))
        self.gate.on_stream = self._streamed
        self.attendants: dict[int, Attendant] = {}
        self.memory = LaneMemory(settings.name, around.history, around.clock)
        self.recycles = RecycleDesk(settings, self.gate, around, recycled)
        self.recycles.on_complete = lambda lost: tell(ev.RecordWritten(self._now(), lost))
        self.remedies = RemedyDesk(settings, around.clock, tasks, tell)
        self.canaries = CanaryDesk(settings, self.gate, around, tasks, self._sampled)
        self.handoff = Handoff(settings, around.state_dir / "prefix" / settings.name, self.gate, self.recycles)
        self.timers = Timers(lambda name: tell(ev.TimerFired(self._now(), name)))
        self._around = around
        self._tasks = tasks
        self._tell = tell
        self._pass_sample = sampled
        self._table = self._make_table()

    def take(self, settings: LaneSettings) -> None:
        """A reload changed the lane's settings; workers that live keep those they were started with."""
        self.settings = self.recycles.settings = self.handoff.settings = self.remedies.settings = settings
        self.canaries.take(settings)
        self.gate.terms = gate_terms(settings)
        for attendant in self.attendants.values():
            attendant.take(settings)

    async def perform(self, command: cmd.Command) -> None:
        """Do it; returns when the next command may be done."""
        awaited = self._table[type(command)](command)
        if isinstance(awaited, Awaitable):
            await awaited

    def part_with(self, generation: int) -> None:
        """A worker's process is gone: let go of what looked after it."""
        attendant = self.attendants.pop(generation, None)
        if attendant:
            self._tasks.start(attendant.close(), f"part with generation {generation}")

    async def close(self) -> None:
        """Let go of everything; processes that still live are left to their tethers."""
        self.timers.disarm_all()
        for attendant in tuple(self.attendants.values()):
            await attendant.close()

    def _make_table(self) -> dict[type[cmd.Command], Callable[[Any], Any]]:
        name, recycles = self.settings.name, self._around.recycles
        return {
            cmd.AwaitRoom: self._await_room,
            cmd.SpawnWorker: lambda c: self.attendants[c.generation].spawn(),
            cmd.StopWorker: self._stop_worker,
            cmd.KillWorker: lambda c: self.attendants[c.generation].kill(),
            cmd.OpenGate: self._open_gate,
            cmd.HoldGate: self._hold_gate,
            cmd.RefuseGate: self._refuse_gate,
            cmd.WatchIdle: lambda _: self.gate.watch_idle(),
            cmd.CutRequests: lambda c: self.gate.cut(c.generation, c.reason, only_stalled=c.only_stalled),
            cmd.RunCanary: self._run_canary,
            cmd.CancelCanary: lambda _: self.canaries.cancel(),
            cmd.ApplyRemedy: self._apply_remedy,
            cmd.ArmTimer: lambda c: self.timers.arm(c.name, c.after_s, c.jitter),
            cmd.DisarmTimer: lambda c: self.timers.disarm(c.name),
            cmd.AskRecycleSlot: lambda _: recycles.ask(name, lambda: self._tell(ev.RecycleSlotGranted(self._now()))),
            cmd.ReleaseRecycleSlot: lambda _: recycles.give_back(name),
            cmd.WriteIntent: lambda c: self.recycles.write_intent(c.record),
            cmd.WriteRecord: lambda c: self.recycles.write_record(c.record),
            cmd.KeepWish: lambda _: self.memory.keep(self.body) if self.body else None,
            cmd.Note: lambda c: log.info("lane_note", lane=name, note=c.text),
        }

    def _await_room(self, command: cmd.AwaitRoom) -> None:
        attendant = Attendant(
            self.settings,
            command.generation,
            self._around,
            tell=self._tell,
            gate=self.gate,
            canaries=self.canaries,
            handoff=self.handoff,
            beside=lambda: self._beside(command.generation),
            others=lambda: self._others(command.generation),
        )
        self.attendants[command.generation] = attendant
        attendant.find_room(command.need_bytes)

    def _stop_worker(self, command: cmd.StopWorker) -> None:
        self.recycles.worker_stops()
        self.attendants[command.generation].stop(command.handoff_s, is_last=command.is_last)

    def _beside(self, generation: int) -> Upstream | None:
        """The active worker, while another generation starts beside it."""
        active = self.body.workers.active if self.body else None
        if active is None or active.generation == generation:
            return None
        return self.attendants[active.generation].upstream

    def _others(self, generation: int) -> list[Attendant]:
        """Those whose processes live, but for this one."""
        return [other for number, other in self.attendants.items() if number != generation and other.is_alive]

    def _open_gate(self, command: cmd.OpenGate) -> None:
        self._around.device.let_go(self.settings.name)
        self.recycles.gate_opens()
        upstream = self.attendants[command.generation].upstream
        if upstream:
            self.gate.open(upstream)

    def _hold_gate(self, command: cmd.HoldGate) -> None:
        self.recycles.gate_closes(self.body.active.generation if self.body and self.body.workers.active else None)
        if command.is_for_canary:
            self._around.device.hold(self.settings.name)
        else:
            self._around.device.let_go(self.settings.name)
        self.gate.hold(command.reason)

    def _refuse_gate(self, command: cmd.RefuseGate) -> None:
        self._around.device.let_go(self.settings.name)
        self.gate.refuse(command.reason, command.retry_after_s)

    def _run_canary(self, command: cmd.RunCanary) -> None:
        attendant = self.attendants[command.generation]
        upstream, process = attendant.upstream, attendant.process
        worker = self.body.workers.find(command.generation) if self.body else None
        if self.body and upstream and worker:
            age_s, requests = attendant.fresh_since(worker.uptime_s(self._now()), worker.requests)
            self.canaries.run(
                command,
                upstream,
                worker_age_s=age_s,
                worker_requests=requests,
                worker_cpu_s=process.cpu_seconds if process else lambda: 0.0,
                is_well=self.body.state is not LaneState.SUSPECT,
            )

    def _streamed(self, generation: int, body_bytes: int, count: StreamCount, model: str) -> None:
        """A client's stream is complete: if its tokens are known, and enough, its rate is too.

        Streams of a further model are not like the others, and left out.
        """
        if model in self.settings.serves:
            return
        worker = self.body.workers.find(generation) if self.body else None
        per_chunk = self.canaries.tokens_per_chunk(generation)
        tokens = count.told or (round(count.chunks * per_chunk) if per_chunk else 0)
        rate = decode_rate(tokens, count.chunks, count.first_chunks, count.lasted_s)
        if worker is None or rate is None:
            return
        stream = StreamRate(
            tok_s=rate,
            context_tokens=body_bytes // BYTES_PER_TOKEN,
            at_once=self._around.device.inflight(),
            is_estimated=count.told is None,
            worker_age_s=worker.uptime_s(self._now()),
            worker_requests=self.gate.requests(generation),
        )
        self._tell(ev.StreamEnded(self._now(), generation, stream))

    def _apply_remedy(self, command: cmd.ApplyRemedy) -> None:
        upstream = self.attendants[command.generation].upstream
        if upstream:
            self.remedies.apply(command, upstream)

    def _sampled(self, sample: Sample) -> None:
        self._pass_sample(sample)
        if sample.void is not Void.CANCELLED:  # a run that the lane took back it does not wait for any more
            self._tell(ev.SampleTaken(self._now(), sample.generation, sample))

    def _now(self) -> float:
        return self._around.clock.now()


def gate_terms(settings: LaneSettings) -> GateTerms:
    """The lane's settings as its gate needs them."""
    hold = settings.hold
    return GateTerms(settings.max_inflight, settings.max_queue, hold.timeout, hold.comments_after)
