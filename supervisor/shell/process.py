"""One worker process: started under a tether, watched, stopped with its whole family."""

from __future__ import annotations

import asyncio
import contextlib
import marshal
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import structlog

from supervisor.errors import FreshlaneError
from supervisor.shell import family as kinship
from supervisor.shell import tether
from supervisor.shell.output import Output
from supervisor.shell.tasks import Tasks

log = structlog.get_logger(__name__)

TETHER = Path(tether.__file__)
POLL_S = 0.1

_lingering: set[subprocess.Popen[bytes]] = set()
"""Tethers that were let go and have not ended yet; asked again whenever a worker starts or is closed."""


@dataclass(frozen=True, slots=True)
class WorkerSpec:
    """What to start, and how to stop it."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    """The full environment, not what is added to ours."""
    cwd: Path | None
    output_path: Path
    output_max_bytes: int
    output_keep: int
    stop_signal: signal.Signals
    stop_timeout_s: float
    may_kill: bool
    lane: str
    generation: int


@dataclass(frozen=True, slots=True)
class ExitStatus:
    """How a worker ended: by itself with a code, or by a signal. Neither: its tether was killed, so nobody saw."""

    code: int | None
    signal: str | None

    def __str__(self) -> str:
        if self.signal is not None:
            return f"killed by {self.signal}"
        return "ended unseen" if self.code is None else f"exit code {self.code}"


class SpawnFailedError(FreshlaneError):
    """The worker's command could not be started; names it and what to look at."""

    def __init__(self, spec: WorkerSpec, reason: str) -> None:
        command = spec.argv[0] if spec.argv else "an empty command"
        super().__init__(f"lane {spec.lane}: cannot start {command}: {reason}")


class WorkerProcess:
    """A started worker. ``exit`` is done when its first process has ended; its family may live on."""

    def __init__(
        self, spec: WorkerSpec, pid: int, control: socket.socket, parent: subprocess.Popen[bytes], output: Output
    ) -> None:
        self.spec = spec
        self.pid = pid
        self.pgid = pid
        self.started_at = time.monotonic()
        self.create_time = kinship.create_time(pid) or 0.0
        self.exit: asyncio.Future[ExitStatus] = asyncio.get_running_loop().create_future()
        self.output = output
        self._control = control
        self._parent = parent
        self._family = kinship.Family(parent.pid, self.pgid)
        self._patience_s = spec.stop_timeout_s
        self._tether_ended = asyncio.Event()
        self._tasks = Tasks()
        self._tasks.start(self._listen(), f"tether of {spec.lane} {spec.generation}")

    @classmethod
    async def spawn(cls, spec: WorkerSpec, deadline_s: float = 10.0) -> WorkerProcess:
        """Start a worker; SpawnFailedError if its command cannot be run, or does not run within ``deadline_s``.

        Cancelled on the way, it leaves no worker: letting go of the control socket ends what has been started.
        """
        _take_lingering()
        output = Output(spec.output_path, spec.output_max_bytes, spec.output_keep)
        control, parent = None, None
        try:
            control, parent = _start_tether(spec, output)
            async with asyncio.timeout(deadline_s):
                await asyncio.get_running_loop().sock_sendall(control, _order(spec))
                answer = await _first_line(control)
            return cls(spec, _pid_in(answer, spec), control, parent, output)
        except BaseException as error:
            if control:
                control.close()
            if parent:
                _lingering.add(parent)
            output.close()
            if isinstance(error, TimeoutError):
                raise SpawnFailedError(
                    spec, f"it did not start within {deadline_s:g} s; is the machine stuck?"
                ) from error
            raise

    def set_patience(self, seconds: float) -> None:
        """How long the tether waits for a stop before it may kill, should the daemon die."""
        self._patience_s = seconds
        with contextlib.suppress(OSError):  # a full or closed socket: the earlier patience stays
            self._control.send(f"patience {seconds:.1f}\n".encode())

    def send_stop(self) -> None:
        """Send the lane's stop signal to the worker's group. Nothing happens if the worker has ended."""
        self._family.living()  # a child may leave the group on its way out: know it before
        if not self.exit.done():
            tether.signal_group(self.pgid, self.spec.stop_signal)

    def kill(self) -> None:
        """SIGKILL to the group and to every descendant, also those in sessions of their own."""
        if not self.exit.done():
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
        with contextlib.suppress(OSError):
            self._control.shutdown(socket.SHUT_WR)
        try:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._tether_ended.wait(), timeout_s)
        finally:  # also when cancelled: nothing stays open, and the tether goes on alone
            self._tasks.cancel()
            self.output.close()
            self.exit.cancel()
            _lingering.add(self._parent)
        await self._tasks.close()
        await _take_ended(self._parent)

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
            while line := await _first_line(self._control):
                self._note(line)
            if not self.exit.done():
                await self._outlive_tether()
        finally:
            self._control.close()
            self._tether_ended.set()

    def _note(self, line: str) -> None:
        word, _, value = line.partition(" ")
        if self.exit.done():
            return
        if word == "exited":
            self.exit.set_result(ExitStatus(int(value), None))
        elif word == "signalled":
            self.exit.set_result(ExitStatus(None, _signal_name(int(value))))

    async def _outlive_tether(self) -> None:
        """Someone killed the tether. A worker that would outlive us is not kept: stop it, and see it go."""
        log.warning("tether_lost", lane=self.spec.lane, generation=self.spec.generation, pid=self.pid)
        due = time.monotonic() + self._patience_s
        self.send_stop()
        while kinship.create_time(self.pid) == self.create_time:
            if self.spec.may_kill and time.monotonic() >= due:
                self.kill()
            await asyncio.sleep(POLL_S)
        if not self.exit.done():
            self.exit.set_result(ExitStatus(None, None))


def _start_tether(spec: WorkerSpec, output: Output) -> tuple[socket.socket, subprocess.Popen[bytes]]:
    """A tether that waits for its order. It has a session of its own: no Ctrl-C, no job control reaches it."""
    ours, theirs = socket.socketpair()
    with theirs:
        try:
            ours.setblocking(False)
            parent = subprocess.Popen(
                [sys.executable, "-I", "-S", str(TETHER), spec.lane, str(spec.generation)],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=output.write_end(),
                start_new_session=True,
            )
        except OSError as error:
            ours.close()
            raise SpawnFailedError(spec, f"its tether cannot run under {sys.executable}: {error.strerror}") from error
        finally:
            output.close_write_end()
    return ours, parent


def _order(spec: WorkerSpec) -> bytes:
    env = {**spec.env, "FRESHLANE_LANE": spec.lane, "FRESHLANE_GENERATION": str(spec.generation)}
    content = marshal.dumps(
        {
            "argv": [os.fsencode(word) for word in spec.argv],
            "env": {os.fsencode(name): os.fsencode(value) for name, value in env.items()},
            "cwd": None if spec.cwd is None else os.fsencode(spec.cwd),
            "stop_signal": int(spec.stop_signal),
            "stop_timeout_s": float(spec.stop_timeout_s),
            "may_kill": spec.may_kill,
        }
    )
    return len(content).to_bytes(4, "big") + content


async def _first_line(control: socket.socket) -> str:
    """One line of the tether's, byte by byte as they are few; empty when it has ended."""
    line = b""
    while not line.endswith(b"\n"):
        try:
            byte = await asyncio.get_running_loop().sock_recv(control, 1)
        except ConnectionError:
            return ""
        if not byte:
            return ""
        line += byte
    return line.decode().strip()


def _pid_in(answer: str, spec: WorkerSpec) -> int:
    """The worker's pid; SpawnFailedError if the answer is another."""
    word, _, rest = answer.partition(" ")
    if word == "started":
        return int(rest)
    if word != "failed":
        raise SpawnFailedError(spec, f"its tether ended at once; see {spec.output_path}")
    number, _, step = rest.partition(" ")
    reason = os.strerror(int(number)) if number != "0" else "it contains a character that no command may have"
    if step == "cwd":
        raise SpawnFailedError(spec, f"its folder {spec.cwd}: {reason}; make it, or correct cwd")
    hint = (
        f"it was looked for in PATH={spec.env.get('PATH', os.defpath)}" if "/" not in spec.argv[0] else "see the path"
    )
    raise SpawnFailedError(spec, f"{reason}; {hint}, and so is the interpreter that a script names in its first line")


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


async def _take_ended(parent: subprocess.Popen[bytes]) -> None:
    """Collect a tether that has closed its socket: its exit is microseconds away, unless it was asked to wait."""
    for _ in range(20):
        _take_lingering()
        if parent not in _lingering:
            return
        await asyncio.sleep(0.005)


def _take_lingering() -> None:
    _lingering.difference_update([parent for parent in _lingering if parent.poll() is not None])
