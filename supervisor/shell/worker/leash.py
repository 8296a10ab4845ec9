"""The daemon's end of a tether: gives the order to start, hears what became of it, and lets go."""

from __future__ import annotations

import asyncio
import contextlib
import marshal
import os
import socket
import subprocess
import sys
from pathlib import Path

from supervisor.shell.worker import tether
from supervisor.shell.worker.output import Output
from supervisor.shell.worker.worker_spec import SpawnFailedError, WorkerSpec

TETHER = Path(tether.__file__)
COLLECT_TRIES = 20
COLLECT_EVERY_S = 0.005

_lingering: set[subprocess.Popen[bytes]] = set()
"""Tethers that were let go and may not have ended yet; asked again whenever one is started or let go."""


class Leash:
    """One tether. As long as it is held, the worker lives; ``drop`` it, or die, and the tether ends the worker."""

    def __init__(self, spec: WorkerSpec, output: Output) -> None:
        """Start a tether that waits for its order. It has a session of its own: no Ctrl-C, no job control reaches it.

        Takes half a millisecond; raises SpawnFailedError.
        """
        _collect()
        self._spec = spec
        self._heard = b""
        self._control, theirs = socket.socketpair()
        self._control.setblocking(False)
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(TETHER), spec.lane, str(spec.generation)],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=output.write_end(),
                start_new_session=True,
            )
        except OSError as error:
            self._control.close()
            raise SpawnFailedError(spec, f"its tether cannot run under {sys.executable}: {error.strerror}") from error
        finally:
            theirs.close()
            output.close_write_end()

    @property
    def pid(self) -> int:
        """The tether's."""
        return self._process.pid

    async def start_worker(self) -> int:
        """The worker's pid, once it runs its own program; SpawnFailedError if it cannot."""
        with contextlib.suppress(OSError):  # a tether that has ended already says nothing, and that is heard below
            await asyncio.get_running_loop().sock_sendall(self._control, _order(self._spec))
        word, _, rest = (await self.hear()).partition(" ")
        if word == "started":
            return int(rest)
        raise SpawnFailedError(self._spec, _reason(word, rest, self._spec))

    async def hear(self) -> str:
        """The next line that the tether says; empty when it has ended."""
        while b"\n" not in self._heard:
            try:
                words = await asyncio.get_running_loop().sock_recv(self._control, 4096)
            except ConnectionError:
                words = b""
            if not words:
                return ""
            self._heard += words
        line, _, self._heard = self._heard.partition(b"\n")
        return line.decode()

    def set_patience(self, seconds: float) -> None:
        """How long the tether shall wait after the stop signal before it may kill."""
        with contextlib.suppress(OSError):  # full or closed: the earlier patience stays
            self._control.send(f"patience {seconds:.1f}\n".encode())

    def let_go(self) -> None:
        """Let the tether end what lives; ``hear`` still tells how."""
        with contextlib.suppress(OSError):
            self._control.shutdown(socket.SHUT_WR)

    def drop(self) -> None:
        """Let go, and hear no more. Nobody may be in ``hear``."""
        self._control.close()
        _lingering.add(self._process)

    async def collect(self) -> None:
        """After ``drop``, take the exit status of a tether that has ended; one that still waits is taken later."""
        for _ in range(COLLECT_TRIES):
            _collect()
            if self._process not in _lingering:
                return
            await asyncio.sleep(COLLECT_EVERY_S)


def _order(spec: WorkerSpec) -> bytes:
    """Bytes throughout: names of files and variables need not be text. Marshalled, as that costs no import."""
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


def _reason(word: str, rest: str, spec: WorkerSpec) -> str:
    """What the tether's answer means for a person."""
    if word != "failed":
        return f"its tether ended at once; see {spec.output_path}"
    number, _, step = rest.partition(" ")
    if step == "cwd":
        return f"its folder {spec.cwd}: {os.strerror(int(number))}; make it, or correct cwd"
    if number == "0":
        return "the command or a variable of env contains a character that none may have"
    place = "see that path" if "/" in spec.argv[0] else f"it was looked for in PATH={spec.env.get('PATH', os.defpath)}"
    return f"{os.strerror(int(number))}; {place}, and at the interpreter that a script names in its first line"


def _collect() -> None:
    _lingering.difference_update([process for process in _lingering if process.poll() is not None])
