"""Looks after one worker, from the search for room to the end of its process, and reports in events.

It decides nothing: the lane says when to spawn, stop and kill. What it answers with:

    find_room   RoomLacked (each time the reason changes), then RoomFound
    spawn       WorkerSpawned or SpawnFailed; then WorkerReady; then WorkerMeasured, again and again; WorkerHung
    stop        saves the prefix cache first, where there is time for it
                StopSent, once that is done
    stop, kill  WorkerExited, exactly once, also where there was no process yet
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable, Sequence

import structlog

from supervisor.core.lane import events as ev
from supervisor.core.workers import stop_patience_s
from supervisor.presets import PRESETS
from supervisor.settings import LaneSettings
from supervisor.shell.front.gate import Gate
from supervisor.shell.front.upstream import Upstream
from supervisor.shell.lane.canary_desk import CanaryDesk
from supervisor.shell.lane.handoff import Handoff
from supervisor.shell.lane.hang_guard import HangGuard
from supervisor.shell.lane.self_report import SelfReport
from supervisor.shell.lane.start_place import StartPlace
from supervisor.shell.lane.surroundings import Surroundings
from supervisor.shell.lane.vital_signs import VitalSigns
from supervisor.shell.machine import ports
from supervisor.shell.machine.holdings import holding_of
from supervisor.shell.machine.reading import host_reading
from supervisor.shell.pace import every
from supervisor.shell.tasks import Tasks
from supervisor.shell.worker.attached import AttachedServer, Process, port_of
from supervisor.shell.worker.launch import Launch, launch_of, served_models
from supervisor.shell.worker.process import ExitStatus, SpawnFailedError, WorkerProcess, WorkerSpec
from supervisor.shell.worker.survivors import Entry

log = structlog.get_logger(__name__)

ROOM_LOOK_S = 0.25
MOST_BESIDE = 1
"""Other workers of the lane that may live while one starts; one that hung may still be on its way out."""
READY_LOOK_S = 0.1
HOLDING_LOOK_S = 3.0
HOLDING_TIMEOUT_S = 1.0
READING_S = 2.0
UPTIME_LOOK_S = 10.0
"""An attached server is asked so often whether it is still the same."""
WATCH_PAUSE_S = 5.0
"""After a fault of our own; one that stays must not fill the log."""
TAIL_LINES = 20


class Attendant:
    """One generation of one lane. ``tell`` takes its events; the gate hears at once when the process is gone."""

    def __init__(
        self,
        lane: LaneSettings,
        generation: int,
        around: Surroundings,
        *,
        tell: Callable[[ev.WorkerEvent], None],
        gate: Gate,
        canaries: CanaryDesk,
        handoff: Handoff,
        beside: Callable[[], Upstream | None],
        others: Callable[[], Sequence[Attendant]],
    ) -> None:
        self.lane = lane
        self.generation = generation
        self.process: Process | None = None
        self.upstream: Upstream | None = None
        self._around = around
        self._tell = tell
        self._gate = gate
        self._canaries = canaries
        self._handoff = handoff
        self._beside = beside
        """The worker that still serves while this one starts, if there is one."""
        self._others = others
        self._tasks = Tasks(self._failed)
        self._place = StartPlace(lane, generation, around, self._tasks)
        self._room: asyncio.Task[None] | None = None
        self._life: asyncio.Task[None] | None = None
        self._parting: asyncio.Task[None] | None = None
        self._watching: asyncio.Task[None] | None = None
        self._trouble = ""
        self._signs: VitalSigns | None = None
        self._guard: HangGuard | None = None
        self._report: SelfReport | None = None
        self._anew: tuple[float, int] | None = None
        """When its settings changed while it lived, and how many requests it had had by then."""
        self._asked_at = 0.0
        self._held_at: float | None = None
        self._held: str | None = None
        self._is_stopping = self._is_last = self._is_ready = False

    @property
    def is_alive(self) -> bool:
        """Whether its process is there."""
        return self.process is not None and not self.process.exit.done()

    @property
    def trouble(self) -> str:
        """Why it is not ready yet, for people."""
        return "; ".join(filter(None, (self._trouble, self._place.trouble)))

    def take(self, lane: LaneSettings) -> None:
        """A reload: a worker that need not be replaced for it is at once watched and spoken to as the new one says."""
        if lane.worker_key() != self.lane.worker_key():
            return
        self.lane = lane
        self._place.lane = lane
        if self._signs:
            self._signs.lane = lane
        if self._guard:
            self._guard.take(lane)
        if self.upstream:
            token = {"Authorization": self.upstream.headers["Authorization"]} if lane.is_ours else {}
            self.upstream.take({**lane.sent_headers(), **token}, served_models(lane))

    def begin_anew(self) -> None:
        """Its settings have changed: what it does from now on is what a fresh worker does with them."""
        self._anew = self._now(), self._gate.requests(self.generation)

    def fresh_since(self, uptime_s: float, requests: int) -> tuple[float, int]:
        """Its age in seconds and in requests, as far as its speed may be compared."""
        return (uptime_s, requests) if self._anew is None else (self._now() - self._anew[0], requests - self._anew[1])

    # ---- what the lane wants ----

    def find_room(self, need_bytes: int) -> None:
        """Look for memory, the port and a start slot until all are there."""
        self._room = self._tasks.start(self._find_room(need_bytes), "find room")

    def spawn(self) -> None:
        """Start the process."""
        self._life = self._tasks.start(self._live(), "run the worker")

    def stop(self, handoff_s: float = 0.0, *, is_last: bool = False) -> None:
        """Send the stop signal, or, where no process is there yet, see to it that there will be none for long.

        With ``handoff_s`` seconds it is first asked to save its prefix cache; said again without, that is broken off.
        ``is_last``: no other follows, so a server that is not ours is let go as it is.
        """
        self._is_stopping, self._is_last = True, is_last
        for task in (self._parting, self._watching):
            if task:
                task.cancel()
        if self.process and self.upstream and handoff_s > 0:
            self._parting = self._tasks.start(self._save_and_stop(self.process, self.upstream, handoff_s), "save")
        elif self.process:
            self._send_stop(self.process)
        elif self._life is None:
            if self._room:
                self._room.cancel()
            self._place.leave()
            self._say(ev.WorkerExited(self._now(), self.generation))

    def kill(self) -> None:
        """SIGKILL the whole family."""
        if self.process:
            self.process.kill()

    async def close(self) -> None:
        """Let go of everything but the process itself: the tether sees to that."""
        await self._tasks.close()
        self._place.leave()
        self._canaries.reports.pop(self.generation, None)
        if self._report:
            await self._report.close()
        if self.upstream:
            await self.upstream.close()
        if self.process:
            await self.process.close()

    async def _save_and_stop(self, process: Process, upstream: Upstream, handoff_s: float) -> None:
        await self._handoff.save(upstream, handoff_s)
        self._send_stop(process)
        self._say(ev.StopSent(self._now(), self.generation))

    def _send_stop(self, process: Process) -> None:
        if self._is_last and isinstance(process, AttachedServer):
            process.let_go()
        else:
            process.send_stop()

    # ---- the way there ----

    async def _find_room(self, need_bytes: int) -> None:
        said = None
        async for _ in every(ROOM_LOOK_S):
            lacking = await self._lacking(need_bytes)
            if lacking is None and (self.lane.is_attached or self._place.take()):
                self._say(ev.RoomFound(self._now(), self.generation))
                return
            reason = lacking or f"waits until {self._place.others} has started (fleet.max_starting)"
            if reason != said:
                said = reason
                self._say(ev.RoomLacked(self._now(), self.generation, reason, is_fleet=lacking is None))

    async def _lacking(self, need_bytes: int) -> str | None:
        left = self._around.ledger.left_of(self.lane.name)
        if left:
            pids = " ".join(map(str, left))
            return f"what an earlier worker left still lives (pid {pids}); `kill -9 {pids}` frees the lane"
        others = self._others()
        if len(others) > MOST_BESIDE:
            oldest = min(others, key=lambda other: other.generation)
            return f"waits until generation {oldest.generation} has ended: of a lane, two workers live at most"
        available = self._around.host.memory_available_bytes()
        if need_bytes > available and not self.lane.is_attached:
            self._around.neighbours.ask_for_room(self.lane.name)
            return f"needs {need_bytes / 1e9:.1f} GB of memory and {available / 1e9:.1f} GB are available"
        port = None if self.lane.is_attached else self.lane.port
        if port is not None and await asyncio.to_thread(ports.is_taken, port):
            holder = await asyncio.to_thread(ports.holder_of, port)
            by = f"pid {holder[0]} ({holder[1]})" if holder else "another process"
            return f"port {port} is taken by {by}"
        return await self._held_elsewhere()

    async def _held_elsewhere(self) -> str | None:
        """A server of somebody else's that has the same model; a lane that overlaps says itself that two fit."""
        model = self.lane.model
        if model is None or not self.lane.looks_for_holders:
            return None
        if self._held_at is None or self._now() - self._held_at >= HOLDING_LOOK_S:
            self._held_at, self._held = self._now(), None
            with contextlib.suppress(TimeoutError):
                holding = await asyncio.wait_for(asyncio.to_thread(holding_of, model), HOLDING_TIMEOUT_S)
                self._held = f"{holding}; {holding.remedy}" if holding else None
        return self._held

    async def _live(self) -> None:
        port = port_of(self.lane.attach) if self.lane.attach else self.lane.port or ports.free_port()
        launch = launch_of(self.lane, generation=self.generation, port=port, state_dir=self._around.state_dir)
        self._place.load_begins()
        try:
            process = self.process = await self._spawned(launch)
        except SpawnFailedError as error:
            self._place.leave()
            self._say(ev.SpawnFailed(self._now(), self.generation, str(error)))
            return
        self._say(ev.WorkerSpawned(self._now(), self.generation, process.pid, port))
        self._place.watch(process)
        if self._is_stopping:
            self._send_stop(process)
        else:
            self._watching = self._tasks.start(self._watch(process, launch), "watch the worker")
        status = await process.exit
        if self._watching:
            self._watching.cancel()
        self._gate.worker_died(self.generation)
        self._place.leave()
        left = await process.reap_leftovers()
        await self._around.ledger.worker_gone(self.lane.name, self.generation, left)
        if not self._is_stopping:
            self._tell_last_words(process, status)
        self._say(
            ev.WorkerExited(self._now(), self.generation, status.code, status.signal, status.trouble, status.restart)
        )

    def _tell_last_words(self, process: Process, status: ExitStatus) -> None:
        """Why a worker died by itself is mostly in what it printed last."""
        words = process.output.tail(TAIL_LINES) if process.output else ""
        about = {"lane": self.lane.name, "generation": self.generation, "pid": process.pid}
        log.warning("worker_died", **about, code=status.code, signal=status.signal, last_words=words)

    async def _spawned(self, launch: Launch) -> Process:
        if self.lane.is_attached:
            return await AttachedServer.find(self.lane)
        process = await WorkerProcess.spawn(self._spec(launch))
        await self._around.ledger.note_worker(Entry.of(process))
        return process

    def _spec(self, launch: Launch) -> WorkerSpec:
        lane, state_dir = self.lane, self._around.state_dir
        cwd = launch.cwd or state_dir / "lanes" / lane.name
        if launch.cwd is None:
            cwd.parent.mkdir(mode=0o700, exist_ok=True)  # one at a time: what `parents` makes is open to others
            cwd.mkdir(mode=0o700, exist_ok=True)
        return WorkerSpec(
            argv=launch.argv,
            env=launch.env,
            cwd=cwd,
            output_path=state_dir / "logs" / f"{lane.name}.log",
            output_max_bytes=self._around.log.max_size,
            output_keep=self._around.log.keep,
            stop_signal=signal.Signals[f"SIG{lane.stop_signal}"],
            stop_timeout_s=stop_patience_s(lane.stop_timeout, 0),
            may_kill=lane.kill == "if_hung",
            lane=lane.name,
            generation=self.generation,
        )

    async def _watch(self, process: Process, launch: Launch) -> None:
        self.upstream = Upstream(self.generation, launch.url, launch.headers, served_models(self.lane))
        report = self._report = SelfReport(self.upstream, PRESETS.get(self.lane.preset or ""), self._now)
        report.listen(process.output)
        self._canaries.reports[self.generation] = report
        signs = self._signs = VitalSigns(
            self.lane, process, self.upstream, launch.port, self._gate, self._canaries, report
        )
        async for _ in every(READY_LOOK_S):
            self._trouble = await signs.what_is_missing(self.lane.start_timeout)
            if signs.is_hopeless and (self.lane.restart_command or not self.lane.is_attached):
                self._say(ev.WorkerHung(self._now(), self.generation, f"it will never serve: {self._trouble}"))
                return
            if not self._trouble:
                break
        await self._handoff.load(self.upstream, self._beside())
        self._place.leave()
        self._is_ready = True
        self._say(ev.WorkerReady(self._now(), self.generation))
        await self._read_on(signs, process)

    async def _read_on(self, signs: VitalSigns, process: Process) -> None:
        guard = self._guard = HangGuard(
            self.lane,
            signs,
            self._around,
            self._canaries,
            hung=lambda evidence: self._say(ev.WorkerHung(self._now(), self.generation, evidence)),
        )
        async with asyncio.TaskGroup() as group:
            group.create_task(guard.run())
            group.create_task(self._read(process))

    async def _read(self, process: Process) -> None:
        async for _ in every(READING_S):
            memory_bytes = process.memory_bytes()
            self._say(
                ev.WorkerMeasured(
                    self._now(),
                    self.generation,
                    memory_bytes=memory_bytes,
                    requests=self._gate.requests(self.generation),
                    generated_tokens=self._gate.generated_tokens(self.generation),
                    idle_s=self._gate.idle_for(self._now()),
                    host=host_reading(self._around.host),
                    own_words=self._report.own_words if self._report else None,
                )
            )
            process.set_patience(stop_patience_s(self.lane.stop_timeout, memory_bytes))
            if isinstance(process, AttachedServer) and await self._has_begun_anew():
                process.restarted("what it says of itself has begun anew")

    async def _has_begun_anew(self) -> bool:
        """Also where it cannot be told which process an attached server is."""
        report, now = self._report, self._now()
        if report is None:
            return False
        if now - self._asked_at >= UPTIME_LOOK_S:
            self._asked_at = now
            await report.ask()
        return report.is_restarted

    def _failed(self, task: str, error: BaseException) -> None:
        """Something on our own side broke; whatever the lane waits for would not come."""
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        what = f"freshlane could not {task}: {str(error) or type(error).__name__}"
        if self.process is None:
            self._place.leave()
            self._say(ev.SpawnFailed(self._now(), self.generation, what))
        elif self.process.exit.done():
            self._say(ev.WorkerExited(self._now(), self.generation))
        elif self._is_ready and self._signs:
            # The worker is not to blame for a fault of ours, and may be in the middle of its answers: watch it anew.
            again = self._watch_again(self._signs, self.process)
            self._watching = self._tasks.start(again, "watch the worker")
        else:
            self._say(ev.WorkerHung(self._now(), self.generation, what))

    async def _watch_again(self, signs: VitalSigns, process: Process) -> None:
        await asyncio.sleep(WATCH_PAUSE_S)
        await self._read_on(signs, process)

    def _say(self, event: ev.WorkerEvent) -> None:
        self._tell(event)

    def _now(self) -> float:
        return self._around.clock.now()
