"""The demo from beginning to end."""

from __future__ import annotations

import asyncio
from typing import Any

from supervisor.cli.client import Daemon
from supervisor.cli.demo.acts import Acts
from supervisor.cli.demo.ending import Outcome, tell_ending
from supervisor.cli.demo.screen import Screen
from supervisor.cli.demo.slowing import slowed
from supervisor.cli.demo.stage import staged
from supervisor.cli.exits import Exit
from supervisor.cli.failures import complain
from supervisor.cli.terminal import say

FACTOR = 3.0
FOUND_OUT_WITHIN_S = 240.0
REPLACED_WITHIN_S = 240.0


async def play() -> int:
    """Show it; the exit code. Raises FreshlaneError in the words for a person."""
    screen = Screen()
    say("freshlane demo: a real worker is slowed from outside, found out, and replaced", "")
    screen.tell("start", "a daemon, one lane: SmolLM2-135M on freshlane's engine")
    # On a machine of few cores the worker's own load moves the reference; what the machine does is --refusals' part.
    async with staged(host_check=False) as stage, Daemon(stage.target()) as daemon:
        outcome = await Play(stage, daemon, screen).run()
    tell_ending(outcome)
    trouble = outcome.trouble()
    if trouble:
        complain(trouble)
    return Exit.FAILED if trouble else Exit.DONE


class Play(Acts):
    """The acts, in order."""

    async def run(self) -> Outcome:
        """All of them. Raises FreshlaneError."""
        return await self.perform(self._acts())

    async def _acts(self) -> Outcome:
        await self.start()
        before, cores = await self.measure()
        async with asyncio.TaskGroup() as group:
            reading = group.create_task(self.reader.read_on())
            async with slowed(self.facts.pid, cores / FACTOR):
                record = await self._recycle()
            self.reader.stop()
            await reading
        during = self.reader.answers[len(before) :]
        drained_at, stopped_at, served_at = (self.facts.entered[state] for state in ("draining", "stopping", "serving"))
        finished = [each for each in during if each.crossed(drained_at, stopped_at)]
        crossing = [each for each in during if each.waited_at(served_at)]
        return Outcome(record, before, during, *(answers[-1] if answers else None for answers in (finished, crossing)))

    async def _recycle(self) -> dict[str, Any]:
        facts = self.facts
        self.screen.tell(
            "slow-down",
            f"SIGSTOP/SIGCONT from outside: process {facts.pid} is {FACTOR:.0f}x slower",
            "bad",
        )
        self.narrator.is_telling = True
        await facts.until(
            lambda: facts.state == "draining" or facts.records, FOUND_OUT_WITHIN_S, "the canary to see it"
        )
        await facts.until(
            lambda: facts.records and facts.state == "serving", REPLACED_WITHIN_S, "the recycle to be done"
        )
        self.narrator.is_telling = False
        return facts.records[-1]
