"""What has to be looked at again and again on macOS: whether it may sleep, and whether it saves power."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterable

from supervisor.shell.lane.runner import Runner
from supervisor.shell.machine.awake import Awake, Work, needs_awake
from supervisor.shell.machine.strain import Strain
from supervisor.shell.pace import every

LOOK_S = 1.0
POWER_EVERY = 30
"""Looks."""


def work_of(runner: Runner) -> Work:
    """What this lane has to do now."""
    return Work(runner.settings.power, runner.lane.state, runner.gate.inflight() + runner.gate.queued)


async def mind_the_mac(lanes: Callable[[], Iterable[Runner]], strain: Strain, awake: Awake) -> None:
    """Until it is cancelled; then the machine may sleep."""
    look = itertools.count()
    try:
        async for _ in every(LOOK_S):
            await awake.keep(needs_awake(map(work_of, lanes())))
            if next(look) % POWER_EVERY == 0:
                await asyncio.to_thread(strain.refresh)
    finally:
        await awake.close()
