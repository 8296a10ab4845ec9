"""The machine we run on: memory, heat and power, and whether time itself stood still."""

from __future__ import annotations

import contextlib
import sys
from dataclasses import dataclass

import psutil

from supervisor.shell.machine import darwin
from supervisor.shell.machine.cgroup import Cgroup
from supervisor.shell.machine.stalls import ClockGaps, LoopLag
from supervisor.shell.machine.strain import Strain, low_power


@dataclass(frozen=True, slots=True)
class SwapUse:
    """``used_bytes`` now; ``moved_bytes`` in and out since boot, a counter to compare."""

    used_bytes: int
    moved_bytes: int


class Host:
    """Readings of this machine, and the watch over stalls of our own loop. ``start`` and ``close`` frame the watch."""

    def __init__(self, cgroup: Cgroup | None = None) -> None:
        self.loop_lag = LoopLag()
        self.clock_gaps = ClockGaps()
        self.strain = Strain()
        self._cgroup = cgroup or Cgroup()
        self.loop_lag.on_sample = self.clock_gaps.sample

    def start(self) -> None:
        """Begin to watch, on the running loop."""
        self.loop_lag.start()

    def close(self) -> None:
        """End the watch."""
        self.loop_lag.close()

    def memory_total_bytes(self) -> int:
        """Of the machine, or of the container we are in."""
        total, limit = int(psutil.virtual_memory().total), self._cgroup.limit_bytes()
        return total if limit is None else min(total, limit)

    def memory_available_bytes(self) -> int:
        """What a new process could get without swapping."""
        available, allowed = int(psutil.virtual_memory().available), self._cgroup.available_bytes()
        return available if allowed is None else min(available, allowed)

    def swap(self) -> SwapUse:
        """Swapping is what makes a healthy worker slow."""
        swap = psutil.swap_memory()
        return SwapUse(int(swap.used), int(swap.sin + swap.sout))

    def thermal_pressure(self) -> str | None:
        """``nominal``, ``moderate``, ``heavy``, ``trapping`` or ``sleeping`` on macOS; None where it is not told."""
        return darwin.thermal_pressure() if sys.platform == "darwin" else None

    def is_low_power(self) -> bool | None:
        """Whether the low power mode slows the machine; None where there is none.

        Runs a program: up to ``strain.ASK_TIMEOUT_S`` seconds, so call it off the loop.
        """
        return low_power() if sys.platform == "darwin" else None

    def is_on_battery(self) -> bool | None:
        """None without a battery, or where nobody tells."""
        with contextlib.suppress(OSError, RuntimeError):
            battery = psutil.sensors_battery()
            return None if battery is None or battery.power_plugged is None else not battery.power_plugged
        return None
