"""Reads the machine's reference right before and right after a lane's canary, and says what that makes of the run."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from supervisor.core.host.host_check import OWN_CORES, HostCheck, Reading
from supervisor.core.host.reading_budget import ReadingBudget
from supervisor.core.samples import Sample, Void
from supervisor.settings import LaneSettings
from supervisor.shell.lane.surroundings import Surroundings
from supervisor.shell.machine.rest import rests

STILL_HOLDS_S = 0.5
"""A reading so young need not be taken again: the runs of a burst follow each other at once."""

FRESH_FOR_PROBES = 2.0
"""For how many times ``canary.every`` a run tells how its lane is doing."""


class HostDesk:
    """One lane's. ``check`` is what it has learned."""

    def __init__(self, settings: LaneSettings, around: Surroundings) -> None:
        self.settings = settings
        self.check = HostCheck()
        self._around = around
        self._budget = ReadingBudget()
        self._last = (-math.inf, Reading())

    @property
    def is_on(self) -> bool:
        """Whether the lane wants its host looked at."""
        return self.settings.canary.host_check == "auto"

    async def read(self, worker_cpu_s: Callable[[], float]) -> Reading:
        """Take a reading once the worker rests, unless the lane does not want it or has spent what it may cost.

        ``worker_cpu_s`` tells the processor time that the lane's own worker has used so far.
        """
        began = self._around.clock.now()
        if began - self._last[0] < STILL_HOLDS_S:
            return self._last[1]
        if not self.is_on or not self._budget.can_afford(began, self.settings.canary.budget):
            return Reading()
        reading = await self._taken(worker_cpu_s) if await rests(worker_cpu_s, OWN_CORES) else Reading()
        self._last = (self._around.clock.now(), reading)
        return reading

    async def _taken(self, worker_cpu_s: Callable[[], float]) -> Reading:
        began, used_s = self._around.clock.now(), worker_cpu_s()
        seconds = await self._around.reference.read()
        took_s = self._around.clock.now() - began
        self._budget.spent(took_s)
        return Reading(seconds, (worker_cpu_s() - used_s) / took_s if took_s > 0 else 0.0)

    def judged(self, sample: Sample, before: Reading, after: Reading, *, is_well: bool) -> Sample:
        """The run with what the host has to do with it; void where the host was slow. ``is_well``: nobody suspects
        the worker.
        """
        if not self.is_on or sample.decode_tok_s is None or sample.decode_tok_s <= 0:
            return sample
        log_rate, falls = math.log(sample.decode_tok_s), self._around.falls
        fresh_for_s = FRESH_FOR_PROBES * self.settings.canary.every
        if not sample.model:
            falls.note(self.settings.name, sample.at, sample.prompt_tokens, log_rate, fresh_for_s)
        found = self.check.find(before, after, falls.depth(sample.at))
        if not sample.model:  # how the lane is doing is told by its own model
            self.check.learn(
                sample.at,
                before,
                after,
                size=sample.prompt_tokens,
                log_rate=log_rate,
                found=found,
                is_well=is_well,
            )
        sample = replace(sample, host_slowness=found.slowness)
        return replace(sample, decode_tok_s=None, void=Void.HOST_SLOW, detail=found.words) if found.is_slow else sample
