"""Memory, power and heat: what makes even a fresh worker slow."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass

import psutil

from supervisor.cli.doctor.finding import Finding, doubtful, good
from supervisor.config import lane_terms
from supervisor.core.words import size
from supervisor.settings import Settings
from supervisor.shell.machine.host import Host

MUCH_SWAP = 0.1
"""Swap in use, as a share of memory, beyond which a model is likely to be in it."""
BUSY = 0.7
"""Load per core beyond which others take a noticeable share."""


@dataclass(frozen=True, slots=True)
class Machine:
    """Readings. None: not told on this machine."""

    memory_bytes: int
    available_bytes: int
    swap_used_bytes: int
    load_per_core: float
    is_on_battery: bool | None
    is_low_power: bool | None
    thermal_pressure: str | None


def read_machine() -> Machine:
    """As it is now."""
    host = Host()
    return Machine(
        memory_bytes=host.memory_total_bytes(),
        available_bytes=host.memory_available_bytes(),
        swap_used_bytes=host.swap().used_bytes,
        load_per_core=psutil.getloadavg()[0] / (psutil.cpu_count() or 1),
        is_on_battery=host.is_on_battery(),
        is_low_power=host.is_low_power(),
        thermal_pressure=host.thermal_pressure(),
    )


def machine(now: Machine, settings: Settings | None) -> Iterator[Finding]:
    """What of it could be in the way."""
    yield from _memory(now, settings)
    yield from _power(now)
    yield from _heat(now)
    if now.load_per_core > BUSY:
        remedy = "end what else runs, or expect verdicts `unknown` (host_slow) while it does"
        yield doubtful("processors", f"load of {now.load_per_core:.1f} per core", remedy)


def _memory(now: Machine, settings: Settings | None) -> Iterator[Finding]:
    text = f"{size(now.available_bytes)} of {size(now.memory_bytes)} available"
    limits = sum(lane.memory.limit or 0 for lane in settings.lanes.values()) if settings else 0
    budget = _budget(settings, now) if settings else now.memory_bytes
    if limits > budget:
        remedy = "lower memory.limit of a lane, or let one start on_demand with idle_unload"
        yield doubtful("memory", f"the lanes' limits add up to {size(limits)}; the budget is {size(budget)}", remedy)
    if now.swap_used_bytes > MUCH_SWAP * now.memory_bytes:
        remedy = "free memory: a model that is swapped out is slow, and no recycle cures that"
        yield doubtful("memory", f"{text}, {size(now.swap_used_bytes)} swapped out", remedy)
    else:
        yield good("memory", text)


def _budget(settings: Settings, now: Machine) -> int:
    lane = next(iter(settings.lanes.values()))
    terms = lane_terms(settings, lane, memory_total_bytes=now.memory_bytes, is_macos=sys.platform == "darwin")
    return terms.memory_budget_bytes


def _power(now: Machine) -> Iterator[Finding]:
    if now.is_low_power:
        yield doubtful("power", "low power mode is on", "turn it off in the battery settings: it slows every worker")
    elif now.is_on_battery:
        yield doubtful("power", "on battery", "plug it in: on battery a machine may slow down and sleep")
    elif now.is_on_battery is False:
        yield good("power", "plugged in")


def _heat(now: Machine) -> Iterator[Finding]:
    if now.thermal_pressure is None:
        return
    if now.thermal_pressure == "nominal":
        yield good("heat", "nominal")
    else:
        remedy = "let it cool down: a hot machine slows itself, and no recycle cures that"
        yield doubtful("heat", f"thermal pressure is {now.thermal_pressure}", remedy)
