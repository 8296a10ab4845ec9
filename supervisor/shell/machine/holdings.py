"""Models that servers on the usual ports hold already: loaded twice, they may take memory that is not there."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import psutil

from supervisor.presets import PRESETS
from supervisor.shell.machine.ports import is_taken

OLDER_PORTS = (8080,)
USUAL_PORTS = tuple(sorted({*(preset.usual_port for preset in PRESETS.values()), *OLDER_PORTS}))
OF_A_DAEMON = "FRESHLANE_GENERATION"
"""In the environment of workers that a daemon has started."""


@dataclass(frozen=True, slots=True)
class Holding:
    """A server that someone else started with this model on its command line."""

    model: str
    port: int
    pid: int
    name: str

    def __str__(self) -> str:
        return f"{self.name} (pid {self.pid}) on port {self.port} already holds {self.model}"

    @property
    def remedy(self) -> str:
        """What resolves it, in words."""
        attach = f"attach: http://127.0.0.1:{self.port}"
        return f"`kill -INT {self.pid}` ends it, `{attach}` uses it, and `replace: overlap` says that both fit"


def holding_of(model: str, usual_ports: Iterable[int] = USUAL_PORTS) -> Holding | None:
    """The server that holds ``model``, by its command line; workers of a daemon are none. Call it off the loop."""
    wanted = frozenset(usual_ports)
    if not any(is_taken(port) for port in wanted):
        return None
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if not any(_is_same(word, model) for word in process.cmdline()[1:]) or OF_A_DAEMON in process.environ():
                continue
            found = wanted & _listened(process)
            if found:
                return Holding(model, min(found), process.pid, process.name())
    return None


def _listened(process: psutil.Process) -> set[int]:
    connections = process.net_connections("tcp")
    return {connection.laddr.port for connection in connections if connection.status == psutil.CONN_LISTEN}


def _is_same(word: str, model: str) -> bool:
    if word == model:
        return True
    return word.startswith("/") and "/" in model and Path(word).resolve() == Path(model).expanduser().resolve()
