"""Workers that outlived their daemon: who they are, and how they are ended."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import structlog

from supervisor.shell.worker import family, tether
from supervisor.shell.worker.process import WorkerProcess

log = structlog.get_logger(__name__)

TETHER_GRACE_S = 1.0
"""How long a survivor's own tether, if it has one, may take to act before we do."""
POLL_S = 0.1
KILL_S = 5.0
NOBODY = -1


@dataclass(frozen=True, slots=True)
class Entry:
    """One worker: who it is, and how it may be ended."""

    lane: str
    generation: int
    pid: int
    create_time: float
    pgid: int
    stop_signal: int
    stop_timeout_s: float
    may_kill: bool

    @classmethod
    def of(cls, worker: WorkerProcess) -> Entry:
        """What is to be remembered of a started worker."""
        spec = worker.spec
        stop = (int(spec.stop_signal), spec.stop_timeout_s, spec.may_kill)
        return cls(spec.lane, spec.generation, worker.pid, worker.create_time, worker.pgid, *stop)

    @classmethod
    def read(cls, fields: Any) -> Entry | None:
        """None for what a torn or a newer version's file may hold."""
        try:
            return cls(**{name: fields[name] for name in cls.__slots__})
        except (KeyError, TypeError):
            return None


@dataclass(frozen=True, slots=True)
class Survivor:
    """What became of an earlier daemon's worker: ``left`` are the pids that would not go, or may not be killed."""

    entry: Entry
    killed: bool
    left: frozenset[int]


async def end(entry: Entry) -> Survivor | None:
    """Wait for a worker of an earlier daemon, or end it; None if nothing of it lived any more.

    Its own tether, if it has one, has told it to stop already; it is told again here if that does not help at once.
    """
    remains = Remains(entry)
    if not remains.living():
        return None
    log.info("survivor_found", lane=entry.lane, generation=entry.generation, pid=entry.pid)
    killed = False
    left = await remains.gone(TETHER_GRACE_S)
    if left:
        remains.signal(signal.Signals(entry.stop_signal))
        left = await remains.gone(entry.stop_timeout_s)
    if left and entry.may_kill:
        killed = True
        remains.signal(signal.SIGKILL)
        left = await remains.gone(KILL_S)
    return Survivor(entry, killed, left)


class Remains:
    """The living processes of one worker that lost its daemon, if they still are that worker's.

    They are known by the first of them. Where that has gone, the number of its group may have been given to a stranger
    since, so of the group count only those that carry the worker's own environment.
    """

    def __init__(self, entry: Entry) -> None:
        self._entry = entry
        self._seen: dict[int, str] = {}
        if family.create_time(entry.pid) is None:
            table = family.process_table()
            group = [pid for pid, (_, its_group, _) in table.items() if its_group == entry.pgid]
            self._seen = {pid: table[pid][2] for pid in group if self._carries_mark(pid)}

    def living(self) -> frozenset[int]:
        """Their pids now."""
        leads = self._leads()
        root, group = (self._entry.pid, self._entry.pgid) if leads else (NOBODY, NOBODY)
        self._seen = tether.kin(family.process_table(), root, group, self._seen)
        return frozenset({*self._seen, self._entry.pid} if leads else self._seen)

    def signal(self, number: signal.Signals) -> None:
        """To the group, if its first process still leads it, and for SIGKILL to each; else to each."""
        living = self.living()
        leads = self._entry.pid in living
        if leads:
            tether.signal_group(self._entry.pgid, number)
        if not leads or number == signal.SIGKILL:
            tether.signal_each(set(living), number)

    async def gone(self, timeout_s: float) -> frozenset[int]:
        """Wait until none lives; who still does after ``timeout_s``."""
        due = time.monotonic() + timeout_s
        while True:
            living = self.living()
            if not living or time.monotonic() >= due:
                return living
            await asyncio.sleep(POLL_S)

    def _leads(self) -> bool:
        return family.create_time(self._entry.pid) == self._entry.create_time

    def _carries_mark(self, pid: int) -> bool:
        with contextlib.suppress(psutil.Error, OSError):
            env = psutil.Process(pid).environ()
            mark = (env.get("FRESHLANE_LANE"), env.get("FRESHLANE_GENERATION"))
            return mark == (self._entry.lane, str(self._entry.generation))
        return False


def boot() -> str:
    """Names this run of the machine: no process outlives it, and start times count from it on Linux."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return ""
