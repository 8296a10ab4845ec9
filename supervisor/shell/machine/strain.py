"""Why this machine may be slower now than it usually is, by its own account. A rate measured then says little."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass

from supervisor.shell.machine import darwin

ASK_TIMEOUT_S = 2.0
POWER_MODES = ("lowpowermode", "powermode")
"""The line of ``pmset -g``, by the age of macOS; 1 is low power."""


def _unknown() -> None:
    """Nobody tells."""


@dataclass(frozen=True, slots=True)
class Readers:
    """Where the account comes from; each may give None for "not told". ``power`` runs a program."""

    heat: Callable[[], str | None] = _unknown
    memory: Callable[[], str | None] = _unknown
    power: Callable[[], bool | None] = _unknown


def low_power(ask: Callable[[], str] | None = None) -> bool | None:
    """Whether macOS saves power at the cost of speed; None if it does not tell."""
    for line in (ask or _pmset)().splitlines():
        words = line.split()
        if len(words) >= 2 and words[0] in POWER_MODES:
            return words[1] == "1"
    return None


def readers_of_this_machine() -> Readers:
    """macOS tells; nobody else does."""
    if sys.platform != "darwin":
        return Readers()
    return Readers(darwin.thermal_pressure, darwin.memory_pressure, low_power)


class Strain:
    """Heat and memory are asked for at once; power as of the last ``refresh``."""

    def __init__(self, readers: Readers | None = None) -> None:
        self._readers = readers or readers_of_this_machine()
        self._is_low_power: bool | None = None

    def refresh(self) -> None:
        """Read what takes a moment: up to ``ASK_TIMEOUT_S`` seconds, so call it off the loop."""
        self._is_low_power = self._readers.power()

    @property
    def is_low_power(self) -> bool | None:
        """As of the last ``refresh``."""
        return self._is_low_power

    def words(self) -> str | None:
        """What strains it now; None if nothing is known to."""
        heat, memory = self._readers.heat(), self._readers.memory()
        if heat not in (None, "nominal"):
            return f"the machine slows itself down because it is hot ({heat})"
        if memory not in (None, "normal"):
            return f"memory is short (pressure {memory})"
        return "low power mode is on" if self._is_low_power else None


def _pmset() -> str:
    """What ``pmset -g`` prints; empty if it does not."""
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        return subprocess.run(
            ("/usr/bin/pmset", "-g"), capture_output=True, text=True, timeout=ASK_TIMEOUT_S, check=True
        ).stdout
    return ""
