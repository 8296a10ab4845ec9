"""A worker's place among those that start: one of ``fleet.max_starting``, and a load on the device.

It is given back when the worker is ready or gone, and also when its start has come to a standstill: others need not
wait for that one. A start that moves again then goes on beside theirs.
"""

from __future__ import annotations

import asyncio

import structlog

from supervisor.core.health.standstill import Standstill, StartReading
from supervisor.settings import LaneSettings
from supervisor.shell.lane.doubts import doubt, moment
from supervisor.shell.lane.surroundings import Surroundings
from supervisor.shell.pace import every
from supervisor.shell.tasks import Tasks
from supervisor.shell.worker.attached import Process

log = structlog.get_logger(__name__)

LONGEST_LOOK_S = 2.0
LOOKS_IN_PATIENCE = 8.0


class StartPlace:
    """Of one generation of one lane. ``tasks``: where its watch runs."""

    def __init__(self, lane: LaneSettings, generation: int, around: Surroundings, tasks: Tasks) -> None:
        self.lane = lane
        """May be set anew at any time."""
        self._generation = generation
        self._around = around
        self._tasks = tasks
        self._watching: asyncio.Task[None] | None = None
        self._still_s: float | None = None

    @property
    def others(self) -> str:
        """Who starts now."""
        return ", ".join(self._around.starts.holders)

    @property
    def trouble(self) -> str:
        """What people are told about a start that stands still; empty while it moves."""
        if self._still_s is None:
            return ""
        return f"no output, no CPU time, no more memory for {self._still_s:.0f} s; other lanes may start meanwhile"

    def take(self) -> bool:
        """Take one of the fleet's places, if one is free."""
        return self._around.starts.take(self._name)

    def load_begins(self) -> None:
        """From now on it is a load on the device."""
        self._around.device.load_began(self.lane.name, self._generation)

    def watch(self, process: Process) -> None:
        """Give the place back early should this process come to a standstill."""
        self._watching = self._tasks.start(self._watch(process), "watch the start")

    def leave(self) -> None:
        """It is ready, or gone, or never came to be."""
        if self._watching:
            self._watching.cancel()
        self._still_s = None
        self._free()

    @property
    def _name(self) -> str:
        return f"{self.lane.name}/{self._generation}"

    def _free(self) -> None:
        self._around.starts.give_back(self._name)
        self._around.device.load_ended(self.lane.name, self._generation)

    async def _watch(self, process: Process) -> None:
        looked = moment(self._around.host, self._around.clock.now())
        standstill = Standstill(self.lane.hang.after, self._reading(process))
        async for _ in every(min(LONGEST_LOOK_S, self.lane.hang.after / LOOKS_IN_PATIENCE)):
            found = doubt(self._around.host, looked)
            reading = self._reading(process)
            looked = moment(self._around.host, reading.at)
            standstill.patience_s = self.lane.hang.after
            is_still = standstill.look(reading, was_blind=found is not None)
            self._turn(standstill.still_s if is_still else None)

    def _turn(self, still_s: float | None) -> None:
        was_still, self._still_s = self._still_s is not None, still_s
        if still_s is not None and not was_still:
            log.warning("start_stands_still", lane=self.lane.name, generation=self._generation, still_s=still_s)
            self._free()
        elif still_s is None and was_still:
            log.info("start_moves_again", lane=self.lane.name, generation=self._generation)
            self.load_begins()

    def _reading(self, process: Process) -> StartReading:
        printed = process.output.printed_bytes if process.output else 0
        return StartReading(self._around.clock.now(), process.cpu_seconds(), process.memory_bytes(), printed)
