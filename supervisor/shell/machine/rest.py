"""Whether a process rests: a reading of the machine taken while a worker reckons would be of its work."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

RESTS_WITHIN_S = 0.5
"""A worker that was broken off in the middle of a step ends that step; one that is still busy then has no rest."""

LOOK_S = 0.05
"""Long enough for processor time that is counted in hundredths of a second."""


async def rests(cpu_s: Callable[[], float], cores: float) -> bool:
    """Wait until it uses no more than ``cores`` of the processor; whether it came to that.

    ``cpu_s`` tells the processor time that it has used so far.
    """
    now = asyncio.get_running_loop().time
    due = now() + RESTS_WITHIN_S
    while now() < due:
        at, used_s = now(), cpu_s()
        await asyncio.sleep(LOOK_S)
        if cpu_s() - used_s <= cores * (now() - at):
            return True
    return False
