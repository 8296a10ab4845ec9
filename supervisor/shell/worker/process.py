"""One worker process: started under a tether, watched, stopped with its whole family."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time

import structlog

from supervisor.shell.tasks import Tasks
from supervisor.shell.worker import family, tether
from supervisor.shell.worker.leash import Leash
from supervisor.shell.worker.output import Output
from supervisor.shell.worker.worker_spec import ExitStatus, SpawnFailedError, WorkerSpec

__all__ = ["ExitStatus", "SpawnFailedError", "WorkerProcess", "WorkerSpec"]

log = structlog.get_logger(__name__)

POLL_S = 0.1


class WorkerProcess:
    """A started worker. ``exit`` is done when its first process has ended; its family may live on."""

    def __init__(self, spec: WorkerSpec, pid: int, leash: Leash, output: Output) -> None:
        self.spec = spec
        self.pid = pid
        self.pgid = pid
        self.started_at = time.monotonic()
        self.create_time = family.create_time(pid) or 0.0
        self.exit: asyncio.Future[ExitStatus] = asyncio.get_running_loop().create_future()
        self.output = output
        self._leash = leash
        self._family = family.Family(leash.pid, self.pgid)
        self._has_ended = False
        self._patience_s = spec.stop_timeout_s
        self._tether_ended = asyncio.Event()
        self._tasks = Tasks()
        self._tasks.start(self._listen(), f"tether of {spec.lane} {spec.generation}")

    @classmethod
    async def spawn(cls, spec: WorkerSpec, deadline_s: float = 10.0) -> WorkerProcess:
        """Start a worker; SpawnFailedError if its command cannot be run, or does not run within ``deadline_s``.

        Cancelled on the way, it leaves no worker: the tether ends what has been started. (Await it directly:
        ``asyncio.wait_for`` may lose a result that comes at the deadline.)
        """
        output = Output(spec.output_path, spec.output_max_bytes, spec.output_keep)
        leash: Leash | None = None
        try:
            leash = Leash(spec, output)
            async with asyncio.timeout(deadline_s):
                pid = await leash.start_worker()
        except BaseException as error:
            if leash:
                leash.drop()
            output.close()
            if isinstance(error, TimeoutError):
                reason = f"it did not start within {deadline_s:g} s; is the machine short of memory or disk?"
                raise SpawnFailedError(spec, reason) from error
            raise
        return cls(spec, pid, leash, output)

    def set_patience(self, seconds: float) -> None:
        """How long the tether waits after the stop signal before it may kill, should the daemon die."""
        self._patience_s = seconds
        self._leash.set_patience(seconds)

    def send_stop(self) -> None:
        """Send the lane's stop signal to the worker's group. Nothing happens if the worker has ended."""
        self._family.living()  # a child may leave the group on its way out: know it before
        if not self._has_ended:
            tether.signal_group(self.pgid, self.spec.stop_signal)

    def kill(self) -> None:
        """SIGKILL to the group and to every descendant, also those in sessions of their own."""
        if not self._has_ended:
            tether.signal_group(self.pgid, signal.SIGKILL)
        self._family.signal(signal.SIGKILL)

    def family(self) -> set[int]:
        """The pids of the worker and all its living descendants."""
        return self._family.living()

    def memory_bytes(self) -> int:
        """Physical memory of the whole family."""
        return self._family.memory_bytes()

    def cpu_seconds(self) -> float:
        """Processor time of the whole family since it started."""
        return self._family.cpu_seconds()

    def listens_on(self, port: int) -> bool:
        """Whether a process of the family, and no stranger, listens on 127.0.0.1:``port``."""
        return self._family.listens_on(port)

    async def reap_leftovers(self, term_s: float = 5.0, kill_s: float = 5.0) -> set[int]:
        """After the exit: end what descended from the worker and still lives; returns who will not go.

        SIGTERM, then after ``term_s`` seconds SIGKILL where the lane allows it, and ``kill_s`` seconds for that.
        """
        if not self._family.signal(signal.SIGTERM) or not await self._wait_for_none(term_s):
            return set()
        if self.spec.may_kill:
            self._family.signal(signal.SIGKILL)
            await self._wait_for_none(kill_s)
        return self._family.living()

    async def close(self, timeout_s: float = 5.0) -> None:
        """Let go: a worker that still runs is stopped by its tether. Waits ``timeout_s`` for the family's end."""
        self._leash.let_go()
        try:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._tether_ended.wait(), timeout_s)
        finally:  # also when cancelled: nothing stays open, and the tether goes on alone
            self._tasks.cancel()
            self.output.close()
            self.exit.cancel()
        await self._tasks.close()
        await self._leash.collect()

    async def _wait_for_none(self, timeout_s: float) -> set[int]:
        due = time.monotonic() + timeout_s
        while True:
            living = self._family.living()
            if not living or time.monotonic() >= due:
                return living
            await asyncio.sleep(POLL_S)

    async def _listen(self) -> None:
        """Take what the tether says until it ends."""
        try:
            while line := await self._leash.hear():
                word, _, value = line.partition(" ")
                if word == "exited":
                    self._end(ExitStatus(int(value), None))
                elif word == "signalled":
                    self._end(ExitStatus(None, _signal_name(int(value))))
            if not self._has_ended:
                await self._outlive_tether()
        finally:
            self._leash.drop()
            self._tether_ended.set()

    async def _outlive_tether(self) -> None:
        """Someone killed the tether. A worker that would outlive us is not kept: stop it, and see it go."""
        log.warning("tether_lost", lane=self.spec.lane, generation=self.spec.generation, pid=self.pid)
        due = time.monotonic() + self._patience_s
        self.send_stop()
        while family.create_time(self.pid) == self.create_time:
            if self.spec.may_kill and time.monotonic() >= due:
                self.kill()
            await asyncio.sleep(POLL_S)
        self._end(ExitStatus(None, None))

    def _end(self, status: ExitStatus) -> None:
        self._has_ended = True
        if not self.exit.done():
            self.exit.set_result(status)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
