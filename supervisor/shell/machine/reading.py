"""The machine's readings as plain data, for the core to decide by."""

from __future__ import annotations

import sys

import psutil

from supervisor.core.account.cause import HostReading
from supervisor.shell.machine import darwin
from supervisor.shell.machine.host import Host


def host_reading(host: Host) -> HostReading:
    """Memory, heat and power as they are now; cheap enough for every other second."""
    is_mac = sys.platform == "darwin"
    return HostReading(
        total_bytes=host.memory_total_bytes(),
        available_bytes=host.memory_available_bytes(),
        swap_used_bytes=host.swap().used_bytes,
        compressed_bytes=darwin.compressed_bytes() if is_mac else None,
        wired_bytes=getattr(psutil.virtual_memory(), "wired", None),
        pressure=darwin.memory_pressure() if is_mac else None,
        heat=host.thermal_pressure(),
        is_low_power=host.strain.is_low_power,
    )
