"""A server that someone else runs, in the shape of a worker process: watched and, if its owner says how, restarted."""

from __future__ import annotations

import asyncio
from typing import Protocol
from urllib.parse import urlsplit

import psutil
import structlog

from supervisor.settings import LaneSettings
from supervisor.shell.machine import footprint, ports
from supervisor.shell.pace import every
from supervisor.shell.tasks import Tasks
from supervisor.shell.worker.output import Output
from supervisor.shell.worker.process import ExitStatus

log = structlog.get_logger(__name__)

LOOK_S = 2.0
LOOKS_THAT_MEAN_GONE = 3
RESTART_TIMEOUT_S = 120.0


class Process(Protocol):
    """What an attendant needs of a worker's process."""

    pid: int
    exit: asyncio.Future[ExitStatus]

    @property
    def output(self) -> Output | None:
        """What it prints; None where that is not ours to read."""

    def send_stop(self) -> None:
        """Ask it to end."""

    def kill(self) -> None:
        """End it."""

    def memory_bytes(self) -> int:
        """Physical memory."""

    def cpu_seconds(self) -> float:
        """Processor time since it started."""

    def listens_on(self, port: int) -> bool:
        """Whether it is what listens there."""

    def set_patience(self, seconds: float) -> None:
        """How long it may take to end, should the daemon die."""

    async def reap_leftovers(self) -> set[int]:
        """End what it left behind."""

    async def close(self) -> None:
        """Let go of it."""


class AttachedServer:
    """Not ours: it is never signalled. Its ``exit`` is done when it cannot be reached any more, or was restarted."""

    def __init__(self, lane: LaneSettings, port: int, pid: int) -> None:
        self.pid = pid
        self.exit: asyncio.Future[ExitStatus] = asyncio.get_running_loop().create_future()
        self.output: Output | None = None
        self._lane = lane
        self._port = port
        self._process = _process_of(pid)
        self._tasks = Tasks()
        self._tasks.start(self._watch(), f"watch {lane.attach}")

    @classmethod
    async def find(cls, lane: LaneSettings) -> AttachedServer:
        """The server behind ``attach``; one that is not there yet has pid 0."""
        port = port_of(lane.attach or "")
        holder = await asyncio.to_thread(ports.holder_of, port)
        return cls(lane, port, holder[0] if holder else 0)

    def send_stop(self) -> None:
        """Run the owner's restart command, if there is one; without it the server stays as it is."""
        self._tasks.start(self._restart(), f"restart {self._lane.attach}")

    def restarted(self, sign: str) -> None:
        """Its owner has restarted it, as ``sign`` shows: what serves now is another worker."""
        self._end(ExitStatus(None, None, restart=sign))

    def let_go(self) -> None:
        """Watch it no longer; it goes on."""
        self._end(ExitStatus(None, None))

    def kill(self) -> None:
        """It is not ours to kill."""

    def memory_bytes(self) -> int:
        """Physical memory of the process that listens; 0 where it cannot be told."""
        return footprint.of({self.pid}) if self.pid else 0

    def cpu_seconds(self) -> float:
        """Nothing is known: it does not count as progress."""
        return 0.0

    def listens_on(self, port: int) -> bool:
        """Whoever listens there is what the person named."""
        return port == self._port

    def set_patience(self, seconds: float) -> None:
        """Nobody ends it but its owner."""

    async def reap_leftovers(self) -> set[int]:
        """Nothing of it is ours."""
        return set()

    async def close(self) -> None:
        """Stop watching."""
        await self._tasks.close()
        if not self.exit.done():
            self.exit.cancel()

    async def _restart(self) -> None:
        command = self._lane.restart_command
        trouble = await self._run(command) if command else ""
        if trouble:
            log.error("restart_command_failed", lane=self._lane.name, command=command, error=trouble)
        self._end(ExitStatus(None, None, trouble))

    async def _run(self, command: tuple[str, ...]) -> str:
        """What went wrong with it, in words; empty if nothing did."""
        try:
            process = await asyncio.create_subprocess_exec(*command)
        except OSError as error:
            return f"restart_command cannot be run: {command[0]}: {error}"
        try:
            code = await asyncio.wait_for(process.wait(), RESTART_TIMEOUT_S)
        except TimeoutError:
            return f"restart_command was not done within {RESTART_TIMEOUT_S:.0f} s"
        finally:
            if process.returncode is None:
                process.kill()
        return f"restart_command failed with exit code {code}" if code else ""

    async def _watch(self) -> None:
        """Gone: it was there, and for several looks nobody listens; or another process listens in its place."""
        was_there, missed = self.pid != 0, 0
        async for _ in every(LOOK_S):
            is_there = await asyncio.to_thread(ports.is_taken, self._port)
            was_there = was_there or is_there
            missed = 0 if is_there else missed + 1
            if is_there and self._process and not self._process.is_running():
                self.restarted(f"pid {self.pid} is gone, and its port is served")
                return
            if was_there and missed >= LOOKS_THAT_MEAN_GONE:
                self._end(ExitStatus(None, None))
                return

    def _end(self, status: ExitStatus) -> None:
        if not self.exit.done():
            self.exit.set_result(status)


def _process_of(pid: int) -> psutil.Process | None:
    """None where it is not known which process that is."""
    try:
        return psutil.Process(pid) if pid else None
    except psutil.Error:
        return None


def port_of(url: str) -> int:
    """The port that ``url`` means, said or not."""
    address = urlsplit(url)
    return address.port or (443 if address.scheme == "https" else 80)
