"""The processes of one worker: who they are, by pid and start time, and what they use."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from pathlib import Path

import psutil

from supervisor.shell import footprint, tether

PAGE = os.sysconf("SC_PAGE_SIZE")
TICKS = os.sysconf("SC_CLK_TCK")
LISTENS_FOR_US = frozenset({"127.0.0.1", "0.0.0.0", "::", "::ffff:127.0.0.1"})  # noqa: S104 - read, not bound


def create_time(pid: int) -> float | None:
    """When a living process started; with its pid it names it. None if it is gone, or is a zombie.

    Seconds, since boot on Linux: the same over any step of the clock. Compare it, do not show it.
    """
    if sys.platform == "linux":
        with contextlib.suppress(OSError, IndexError):
            state, *fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
            return None if state in (b"Z", b"X") else int(fields[18]) / TICKS
        return None
    with contextlib.suppress(psutil.Error):
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else process.create_time()
    return None


def process_table() -> tether.Table:
    """All living processes; some 20 us each."""
    if sys.platform == "linux":
        return tether.table_of_linux()
    table: tether.Table = {}
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.status() != psutil.STATUS_ZOMBIE:
                table[process.pid] = (process.ppid(), os.getpgid(process.pid), str(process.create_time()))
    return table


class Family:
    """All that descends from a tether. What was seen once stays known, also after setsid and a lost parent."""

    def __init__(self, tether_pid: int, group: int) -> None:
        self._tether = tether_pid
        self._group = group
        self._seen: dict[int, str] = {}

    def living(self) -> set[int]:
        """The pids that live now, zombies excepted."""
        self._seen = tether.kin(process_table(), self._tether, self._group, self._seen)
        return set(self._seen)

    def signal(self, number: signal.Signals) -> set[int]:
        """Send a signal to each who lives; returns them."""
        living = self.living()
        tether.signal_each(living, number)
        return living

    def memory_bytes(self) -> int:
        """Physical memory. Pages that several of them share are counted once, as far as that can be had cheaply."""
        return footprint.of(self.living())

    def cpu_seconds(self) -> float:
        """Processor time used by those who live, and by those of their children who have ended."""
        total = 0.0
        for pid in self.living():
            with contextlib.suppress(psutil.Error):
                times = psutil.Process(pid).cpu_times()
                total += times.user + times.system + times.children_user + times.children_system
        return total

    def listens_on(self, port: int) -> bool:
        """Whether one of them accepts what is sent to 127.0.0.1:``port``."""
        for pid in self.living():
            with contextlib.suppress(psutil.Error):
                for connection in psutil.Process(pid).net_connections("tcp"):
                    listens = connection.status == psutil.CONN_LISTEN
                    if listens and connection.laddr.port == port and connection.laddr.ip in LISTENS_FOR_US:
                        return True
        return False
