"""Keeps macOS from sleeping while there is work, through its own ``caffeinate``."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import structlog

from supervisor.core.states import LaneState

log = structlog.get_logger(__name__)

COMMAND = ("/usr/bin/caffeinate", "-i")
ENDING_S = 5.0
IN_BETWEEN = frozenset({LaneState.STARTING, LaneState.WARMING, LaneState.DRAINING, LaneState.STOPPING})


@dataclass(frozen=True, slots=True)
class Work:
    """What a lane has to do now."""

    power: Literal["busy", "always", "never"]
    state: LaneState
    requests: int
    """In flight, and held."""


def needs_awake(lanes: Iterable[Work]) -> bool:
    """Whether any lane would suffer if the machine slept now."""
    return any(
        lane.power == "always" or (lane.power == "busy" and (lane.requests > 0 or lane.state in IN_BETWEEN))
        for lane in lanes
    )


class Awake:
    """Holds the machine awake between ``keep(True)`` and ``keep(False)``, and never beyond the daemon's own end."""

    def __init__(self, command: tuple[str, ...] = COMMAND) -> None:
        self._command = (*command, "-w", str(os.getpid()))  # -w: it ends with this process, however that ends
        self._holder: asyncio.subprocess.Process | None = None
        self._is_refused = False

    @property
    def is_kept(self) -> bool:
        """Whether it is held awake now."""
        return self._holder is not None and self._holder.returncode is None

    async def keep(self, is_needed: bool) -> None:
        """Hold it, or let go. Where the tool cannot be run that is logged once, and nothing is held."""
        if is_needed and not self.is_kept and not self._is_refused:
            await self._hold()
        elif not is_needed:
            await self.close()

    async def close(self) -> None:
        """Let go."""
        holder, self._holder = self._holder, None
        if holder is None:
            return
        with contextlib.suppress(ProcessLookupError):
            holder.terminate()
        try:
            await asyncio.wait_for(holder.wait(), ENDING_S)
        except TimeoutError:
            holder.kill()
            await holder.wait()

    async def _hold(self) -> None:
        null = asyncio.subprocess.DEVNULL
        try:
            self._holder = await asyncio.create_subprocess_exec(
                *self._command, stdin=null, stdout=null, stderr=null, start_new_session=True
            )
        except OSError as error:
            self._is_refused = True
            log.warning("machine_may_sleep", error=str(error), remedy="keep it awake yourself, or set power: never")
