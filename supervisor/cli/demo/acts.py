"""What every play of the demo has: a stage, a client, and a worker that is measured while it is fresh."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from supervisor.cli.client import Daemon
from supervisor.cli.demo.facts import Facts
from supervisor.cli.demo.narrator import Narrator
from supervisor.cli.demo.present import Present
from supervisor.cli.demo.reader import Answer, Reader
from supervisor.cli.demo.screen import Screen
from supervisor.cli.demo.slower import cpu_seconds
from supervisor.cli.demo.stage import LANE, Stage
from supervisor.cli.exits import CommandError
from supervisor.core.words import rate
from supervisor.errors import FreshlaneError

T = TypeVar("T")

QUESTIONS = (
    "Why is the sky blue?",
    "How do bees make honey?",
    "What does the moon do to the sea?",
)
LOADED_WITHIN_S = 900.0
"""The first time, the model is fetched and converted."""
MEASURED_WITHIN_S = 120.0


class Acts:
    """Plays add their own acts to these."""

    fresh_runs = 10
    """Canary runs that the baseline shall rest on."""

    def __init__(self, stage: Stage, daemon: Daemon, screen: Screen) -> None:
        self.stage = stage
        self.screen = screen
        self.narrator = Narrator(screen)
        self.facts = Facts(daemon, LANE, self.heard)
        self.reader = Reader(stage.url, LANE, QUESTIONS)
        self._present = Present(self.facts, self.reader)

    def heard(self, kind: str, document: dict[str, Any]) -> None:
        """An event came."""
        self.narrator.heard(kind, document)

    async def perform(self, acts: Coroutine[Any, Any, T]) -> T:
        """Play them in company of what follows the daemon. Raises FreshlaneError."""
        with self.screen.live(self._present.lines):
            try:
                async with asyncio.TaskGroup() as group:
                    company = [
                        group.create_task(each)
                        for each in (self.facts.follow(), self.facts.look_on(), self._listen_to_loading())
                    ]
                    outcome = await acts
                    for task in company:
                        task.cancel()
            except BaseExceptionGroup as errors:
                raise _first_of(errors) from errors
        return outcome

    async def start(self) -> None:
        """Until the worker has been measured while it is fresh."""
        facts = self.facts
        await facts.until(lambda: facts.state == "warming" or facts.samples, LOADED_WITHIN_S, "the worker to load")
        await facts.look()
        self.screen.tell("start", f"the worker is up: process {facts.pid}, measured while it is fresh")
        await facts.until(
            lambda: facts.state == "serving" and facts.fresh_tok_s and len(facts.samples) >= self.fresh_runs,
            MEASURED_WITHIN_S,
            "the first canaries",
        )
        self.narrator.fresh_tok_s = facts.fresh_tok_s
        self.screen.tell(
            "baseline", f"{rate(facts.fresh_tok_s)} tok/s is fresh here, by {len(facts.samples)} canary runs", "good"
        )

    async def measure(self) -> tuple[list[Answer], float]:
        """The uninterrupted answers, and how many processor seconds a second the fresh worker used for them."""
        began, used_s, pid = self.screen.elapsed_s(), cpu_seconds(self.facts.pid), self.facts.pid
        answers = await self.reader.read_each_once()
        cores = (cpu_seconds(pid) - used_s) / (self.screen.elapsed_s() - began)
        for answer in answers:
            if not answer.is_whole:
                raise CommandError(f"the demo's client got no whole answer: {answer.error}")
        self.screen.tell("client", f"{len(answers)} answers streamed undisturbed; their sha256 are kept", "good")
        return answers, cores

    async def _listen_to_loading(self) -> None:
        """The worker's last line, while it fetches and loads the model."""
        log = self.stage.folder / "state" / "logs" / f"{LANE}.log"
        while not self.facts.samples:
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
