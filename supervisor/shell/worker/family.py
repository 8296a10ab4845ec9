"""The processes of one worker: who they are, by pid and start time, and what they use."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from pathlib import Path

import psutil

from supervisor.shell.machine import darwin, footprint
from supervisor.shell.worker import tether

TICKS = os.sysconf("SC_CLK_TCK")
READING_AGE_S = 0.5
LISTENS_FOR_US = frozenset({"127.0.0.1", "0.0.0.0", "::", "::ffff:127.0.0.1"})  # noqa: S104 - read, not bound


def create_time(pid: int) -> float | None:
    """When a living process started; with its pid it names it. None if it is gone, or is a zombie.

    By a clock that nobody sets, from boot. Compare it, do not show it.
    """
    if sys.platform == "linux":
        with contextlib.suppress(OSError, IndexError):
            state, *fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
            return None if state in (b"Z", b"X") else int(fields[18]) / TICKS
        return None
    with contextlib.suppress(psutil.Error):
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else _started(process)
    return None


def process_table() -> tether.Table:
    """All living processes; some 20 us each."""
    return tether.table_of_linux() if sys.platform == "linux" else table_of_psutil()


def table_of_psutil() -> tether.Table:
    """The same, where there is no /proc."""
    table: tether.Table = {}
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.status() != psutil.STATUS_ZOMBIE:
                table[process.pid] = (process.ppid(), os.getpgid(process.pid), str(_started(process)))
    return table


class _LatestTable:
    """One table for the readings of all lanes, so that many lanes cost no more than one."""

    def __init__(self) -> None:
        self._table: tether.Table = {}
        self._at = float("-inf")

    def not_older_than(self, age_s: float) -> tuple[float, tether.Table]:
        """When it was taken, and what it says."""
        now = time.monotonic()
        if now - self._at > age_s:
            self._at, self._table = now, process_table()
        return self._at, self._table


def _started(process: psutil.Process) -> float:
    """Psutil's own answer moves when the wall clock is set."""
    usage = darwin.usage_of(process.pid) if sys.platform == "darwin" else None
    return float(usage.started) if usage else process.create_time()


class Family:
    """All that descends from a tether. What was seen once stays known, also after setsid and a lost parent."""

    def __init__(self, tether_pid: int, group: int) -> None:
        self._tether = tether_pid
        self._group = group
        self._seen: dict[int, str] = {}
        self._seen_at = self._born_at = time.monotonic()

    def living(self) -> set[int]:
        """The pids that live now, zombies excepted."""
        return self._living_by(time.monotonic(), process_table())

    def signal(self, number: signal.Signals) -> set[int]:
        """Send a signal to each who lives; returns them."""
        living = self.living()
        tether.signal_each(living, number)
        return living

    def memory_bytes(self) -> int:
        """Physical memory. Pages that several of them share are counted once, as far as that can be had cheaply."""
        return footprint.of(self._readable())

    def cpu_seconds(self) -> float:
        """Processor time used by those who live, and by those of their children who have ended."""
        total = 0.0
        for pid in self._readable():
            with contextlib.suppress(psutil.Error):
                times = psutil.Process(pid).cpu_times()
                total += times.user + times.system + times.children_user + times.children_system
        return total

    def listens_on(self, port: int) -> bool:
        """Whether one of them accepts what is sent to 127.0.0.1:``port``."""
        for pid in self._readable():
            with contextlib.suppress(psutil.Error):
                for connection in psutil.Process(pid).net_connections("tcp"):
                    listens = connection.status == psutil.CONN_LISTEN
                    if listens and connection.laddr.port == port and connection.laddr.ip in LISTENS_FOR_US:
                        return True
        return False

    def _readable(self) -> set[int]:
        """Whose numbers to read: who lived half a second ago is good enough for that."""
        at, table = _latest_table.not_older_than(min(READING_AGE_S, time.monotonic() - self._born_at))
        return self._living_by(at, table) if at >= self._seen_at else set(self._seen)

    def _living_by(self, at: float, table: tether.Table) -> set[int]:
        self._seen, self._seen_at = tether.kin(table, self._tether, self._group, self._seen), at
        return set(self._seen)


_latest_table = _LatestTable()
