"""The machine we run on: memory, heat and power, and whether time itself stood still."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import psutil

from supervisor.shell.stalls import ClockGaps, LoopLag

ASK_TIMEOUT_S = 2.0
UNLIMITED = 1 << 60
"""A cgroup limit above this is none."""


@dataclass(frozen=True, slots=True)
class SwapUse:
    """``used_bytes`` now; ``moved_bytes`` in and out since boot, a counter to compare."""

    used_bytes: int
    moved_bytes: int


class Host:
    """Readings of this machine, and the watch over stalls of our own loop. ``start`` and ``close`` frame the watch."""

    def __init__(self) -> None:
        self.loop_lag = LoopLag()
        self.clock_gaps = ClockGaps()
        self.loop_lag.on_sample = self.clock_gaps.sample

    def start(self) -> None:
        """Begin to watch, on the running loop."""
        self.loop_lag.start()

    def close(self) -> None:
        """End the watch."""
        self.loop_lag.close()

    def memory_total_bytes(self) -> int:
        """Of the machine, or of the container we are in."""
        return min(int(psutil.virtual_memory().total), _cgroup_limit() or UNLIMITED)

    def memory_available_bytes(self) -> int:
        """What a new process could get without swapping."""
        available = int(psutil.virtual_memory().available)
        limit, used = _cgroup_limit(), _cgroup_used()
        return available if limit is None or used is None else max(0, min(available, limit - used))

    def swap(self) -> SwapUse:
        """Swapping is what makes a healthy worker slow."""
        swap = psutil.swap_memory()
        return SwapUse(int(swap.used), int(swap.sin + swap.sout))

    def thermal_pressure(self) -> str | None:
        """``nominal`` or the share of full speed that macOS allows now, such as ``70 %``; None where it is not told.

        Runs a program: up to ``ASK_TIMEOUT_S`` seconds, so call it off the loop.
        """
        if sys.platform != "darwin":
            return None
        for line in _ask("/usr/bin/pmset", "-g", "therm").splitlines():
            key, _, value = line.partition("=")
            if key.strip() == "CPU_Speed_Limit" and value.strip().isdigit():
                return "nominal" if int(value) >= 100 else f"{value.strip()} %"
        return None

    def is_low_power(self) -> bool | None:
        """Whether the low power mode slows the machine; None where there is none. Call it off the loop."""
        if sys.platform != "darwin":
            return None
        for line in _ask("/usr/bin/pmset", "-g").splitlines():
            words = line.split()
            if len(words) >= 2 and words[0] in ("lowpowermode", "powermode"):
                return words[1] == "1"
        return None

    def is_on_battery(self) -> bool | None:
        """None without a battery, or where nobody tells."""
        with contextlib.suppress(OSError, RuntimeError):
            battery = psutil.sensors_battery()
            return None if battery is None or battery.power_plugged is None else not battery.power_plugged
        return None


def _ask(*command: str) -> str:
    """What a system program prints; empty if it does not."""
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        return subprocess.run(command, capture_output=True, text=True, timeout=ASK_TIMEOUT_S, check=True).stdout
    return ""


def _cgroup_limit() -> int | None:
    return _cgroup_number("memory.max")


def _cgroup_used() -> int | None:
    """Less the page cache, which gives way."""
    used = _cgroup_number("memory.current")
    if used is None:
        return None
    with contextlib.suppress(OSError, ValueError):
        words = (_cgroup() / "memory.stat").read_text().split()
        fields = dict(zip(words[::2], words[1::2], strict=False))
        return max(0, used - int(fields.get("inactive_file", 0)))
    return used


def _cgroup_number(name: str) -> int | None:
    """None without cgroups of version 2, and for ``max``."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        return int((_cgroup() / name).read_text())
    return None


def _cgroup() -> Path:
    return Path("/sys/fs/cgroup") / Path("/proc/self/cgroup").read_text().split("::", 1)[1].split("\n")[0].lstrip("/")
