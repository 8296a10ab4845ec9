"""The demo from beginning to end."""

from __future__ import annotations

import asyncio
from typing import Any

from supervisor.cli.client import Daemon
from supervisor.cli.demo.ending import Outcome, tell_ending
from supervisor.cli.demo.facts import Facts
from supervisor.cli.demo.narrator import Narrator
from supervisor.cli.demo.present import Present
from supervisor.cli.demo.reader import Answer, Reader
from supervisor.cli.demo.screen import Screen
from supervisor.cli.demo.slower import cpu_seconds
from supervisor.cli.demo.slowing import slowed
from supervisor.cli.demo.stage import LANE, Stage, staged
from supervisor.cli.exits import CommandError, Exit
from supervisor.cli.failures import complain
from supervisor.cli.terminal import say
from supervisor.core.words import rate
from supervisor.errors import FreshlaneError

FACTOR = 3.0
QUESTIONS = (
    "Why is the sky blue?",
    "How do bees make honey?",
    "What does the moon do to the sea?",
)
FRESH_RUNS = 10
"""Canary runs that the baseline shall rest on."""

LOADED_WITHIN_S = 900.0
"""The first time, the model is fetched and converted."""
MEASURED_WITHIN_S = 120.0
FOUND_OUT_WITHIN_S = 240.0
REPLACED_WITHIN_S = 240.0


async def play() -> int:
    """Show it; the exit code. Raises FreshlaneError in the words for a person."""
    screen = Screen()
    say("freshlane demo: a real worker is slowed from outside, found out, and replaced", "")
    screen.tell("start", "a daemon, one lane: SmolLM2-135M on freshlane's engine")
    async with staged() as stage, Daemon(stage.target()) as daemon:
        outcome = await Play(stage, daemon, screen).run()
    tell_ending(outcome)
    trouble = outcome.trouble()
    if trouble:
        complain(trouble)
    return Exit.FAILED if trouble else Exit.DONE


class Play:
    """The acts, in order."""

    def __init__(self, stage: Stage, daemon: Daemon, screen: Screen) -> None:
        self._stage = stage
        self._daemon = daemon
        self._screen = screen
        self._narrator = Narrator(screen)
        self._facts = Facts(daemon, LANE, self._narrator.heard)
        self._reader = Reader(stage.url, LANE, QUESTIONS)
        self._present = Present(self._facts, self._reader)

    async def run(self) -> Outcome:
        """All of them. Raises FreshlaneError."""
        with self._screen.live(self._present.lines):
            try:
                async with asyncio.TaskGroup() as group:
                    company = [
                        group.create_task(each)
                        for each in (self._facts.follow(), self._facts.look_on(), self._listen_to_loading())
                    ]
                    outcome = await self._acts()
                    for task in company:
                        task.cancel()
            except BaseExceptionGroup as errors:
                raise _first_of(errors) from errors
        return outcome

    async def _acts(self) -> Outcome:
        await self._start()
        before, cores = await self._measure()
        async with asyncio.TaskGroup() as group:
            reading = group.create_task(self._reader.read_on())
            async with slowed(self._facts.pid, cores / FACTOR):
                record = await self._recycle()
            self._reader.stop()
            await reading
        during = self._reader.answers[len(before) :]
        drained_at, stopped_at, served_at = (
            self._facts.entered[state] for state in ("draining", "stopping", "serving")
        )
        finished = [each for each in during if each.crossed(drained_at, stopped_at)]
        crossing = [each for each in during if each.waited_at(served_at)]
        return Outcome(record, before, during, *(answers[-1] if answers else None for answers in (finished, crossing)))

    async def _start(self) -> None:
        facts = self._facts
        await facts.until(lambda: facts.state == "warming" or facts.samples, LOADED_WITHIN_S, "the worker to load")
        await facts.look()
        self._screen.tell("start", f"the worker is up: process {facts.pid}, measured while it is fresh")
        await facts.until(
            lambda: facts.state == "serving" and facts.fresh_tok_s and len(facts.samples) >= FRESH_RUNS,
            MEASURED_WITHIN_S,
            "the first canaries",
        )
        self._narrator.fresh_tok_s = facts.fresh_tok_s
        self._screen.tell(
            "baseline", f"{rate(facts.fresh_tok_s)} tok/s is fresh here, by {len(facts.samples)} canary runs", "good"
        )

    async def _measure(self) -> tuple[list[Answer], float]:
        """The uninterrupted answers, and how many processor seconds a second the fresh worker used for them."""
        began, used_s, pid = self._screen.elapsed_s(), cpu_seconds(self._facts.pid), self._facts.pid
        answers = await self._reader.read_each_once()
        cores = (cpu_seconds(pid) - used_s) / (self._screen.elapsed_s() - began)
        for answer in answers:
            if not answer.is_whole:
                raise CommandError(f"the demo's client got no whole answer: {answer.error}")
        self._screen.tell("client", f"{len(answers)} answers streamed undisturbed; their sha256 are kept", "good")
        return answers, cores

    async def _recycle(self) -> dict[str, Any]:
        facts = self._facts
        self._screen.tell(
            "slow-down",
            f"SIGSTOP/SIGCONT from outside: process {facts.pid} is {FACTOR:.0f}x slower",
            "bad",
        )
        self._narrator.is_telling = True
        await facts.until(
            lambda: facts.state == "draining" or facts.records, FOUND_OUT_WITHIN_S, "the canary to see it"
        )
        await facts.until(
            lambda: facts.records and facts.state == "serving", REPLACED_WITHIN_S, "the recycle to be done"
        )
        self._narrator.is_telling = False
        return facts.records[-1]

    async def _listen_to_loading(self) -> None:
        """The worker's last line, while it fetches and loads the model."""
        log = self._stage.folder / "state" / "logs" / f"{LANE}.log"
        while not self._facts.samples:
            if log.exists():
                lines = (await asyncio.to_thread(log.read_text, errors="replace")).splitlines()
                self._present.loading = lines[-1] if lines else ""
            await asyncio.sleep(0.5)


def _first_of(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    """What went wrong, of several tasks that ended with it; words for a person first."""
    flat: list[BaseException] = []
    waiting: list[BaseException] = list(errors.exceptions)
    while waiting:
        error = waiting.pop(0)
        if isinstance(error, BaseExceptionGroup):
            waiting.extend(error.exceptions)
        else:
            flat.append(error)
    return next((error for error in flat if isinstance(error, FreshlaneError)), flat[0])
