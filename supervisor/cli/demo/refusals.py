"""What freshlane refuses to do: to restart a worker because the machine is slow, or because a context is long."""

from __future__ import annotations

import re
from contextlib import AsyncExitStack
from typing import Any

import psutil

from supervisor.cli.client import Daemon
from supervisor.cli.demo.acts import QUESTIONS, Acts
from supervisor.cli.demo.reader import Answer, Reader
from supervisor.cli.demo.screen import Screen
from supervisor.cli.demo.slowing import slowed
from supervisor.cli.demo.stage import LANE, Stage, staged
from supervisor.cli.exits import CommandError, Exit
from supervisor.cli.failures import complain
from supervisor.cli.terminal import say
from supervisor.core.words import length, plural, rate, share
from supervisor.shell.machine.host_reference import PROGRAM

FACTOR = 3.0
REFERENCE_CORES = 0.05
"""The reference is so short that its first turn, at full speed, counts; and it has to stand out of a busy machine."""

SLOW_RUNS = 3
"""Canaries that say so before the machine is let go."""

LONG_QUESTION = f"Here is a list of words: {'one two three four five six seven eight ' * 100}. What is it about?"
"""Some 800 tokens."""

SEEN_WITHIN_S = 120.0


async def play_refusals() -> int:
    """Show them; the exit code. Raises FreshlaneError in the words for a person."""
    screen = Screen()
    say("freshlane demo --refusals: slow for reasons that a restart would not cure, and no restart", "")
    screen.tell("start", "a daemon, one lane: SmolLM2-135M on freshlane's engine")
    async with staged(host_check=True) as stage, Daemon(stage.target()) as daemon:
        trouble = await Refusals(stage, daemon, screen).run()
    if trouble:
        complain(trouble)
    return Exit.FAILED if trouble else Exit.DONE


class Refusals(Acts):
    """The acts, in order."""

    fresh_runs = 12
    """So many also tell what the host's reference usually takes."""

    def __init__(self, stage: Stage, daemon: Daemon, screen: Screen) -> None:
        super().__init__(stage, daemon, screen)
        self._slow: list[str] = []
        """What canaries said that were void because the machine was slow."""

    def heard(self, kind: str, document: dict[str, Any]) -> None:
        """An event came."""
        if kind == "sample" and document.get("void") == "host_slow":
            self._slow.append(str(document.get("detail")))

    async def run(self) -> str:
        """All of them; what did not go as it should. Raises FreshlaneError."""
        return await self.perform(self._acts())

    async def _acts(self) -> str:
        await self.start()
        answers, cores = await self.measure()
        await self._slow_machine(cores)
        await self._long_context(answers)
        if self.facts.records:
            return f"the worker was restarted all the same: {self.facts.records[-1].get('reason')}"
        self.screen.tell("result", f"no restart; process {self.facts.pid} still serves", "good")
        return ""

    async def _slow_machine(self, cores: float) -> None:
        facts, screen, pid = self.facts, self.screen, self.facts.pid
        screen.tell(
            "slow-down",
            f"SIGSTOP/SIGCONT from outside: the worker is {FACTOR:.0f}x slower, and so is the host's reference",
            "bad",
        )
        began, before = screen.elapsed_s(), len(self._slow)
        async with AsyncExitStack() as slow:
            await slow.enter_async_context(slowed(_reference_of(self.stage), REFERENCE_CORES))
            await slow.enter_async_context(slowed(pid, cores / FACTOR))
            await facts.until(
                lambda: len(self._slow) >= before + SLOW_RUNS and _is_host_slow(facts.lane),
                SEEN_WITHIN_S,
                "the host check to see it",
            )
            screen.tell("verdict", f"the host is slow, no restart: {self._slow[-1]}", "warn")
            (answer,) = await Reader(self.stage.url, LANE, QUESTIONS[:1]).read_each_once()
            screen.tell("client", f"served all the while, at {rate(rate_of(answer))} tok/s; the lane is {facts.state}")
        await facts.until(
            lambda: not _is_host_slow(facts.lane) and facts.lane.get("verdict", {}).get("ratio"),
            SEEN_WITHIN_S,
            "the verdict to lift itself",
        )
        of_fresh = facts.rates[-1] / facts.fresh_tok_s if facts.fresh_tok_s else None
        took = length(screen.elapsed_s() - began)
        screen.tell("verdict", f"lifted by itself after {took}: the worker is at {share(of_fresh)} of fresh", "good")

    async def _long_context(self, short: list[Answer]) -> None:
        facts, screen = self.facts, self.screen
        reader = Reader(self.stage.url, LANE, (LONG_QUESTION,))
        (answer,) = await reader.read_each_once()
        if not answer.is_whole:
            raise CommandError(f"the demo's client got no whole answer: {answer.error}")
        words = len(re.findall(r"\w+", LONG_QUESTION))
        known = len(facts.samples)
        screen.tell(
            "client",
            f"a stream behind {plural(words, 'word')} of context: {rate(rate_of(answer))} tok/s and "
            f"{length(answer.waited_s)} to its first token; short ones had {rate(max(map(rate_of, short)))} tok/s "
            f"and {length(min(each.waited_s for each in short))}",
            "bad",
        )
        await facts.until(lambda: len(facts.samples) > known, SEEN_WITHIN_S, "the canary of the same moment")
        fresh = facts.fresh_tok_s
        canary = facts.rates[-1]
        screen.tell(
            "verdict",
            f"context, not age, no restart: the canary of the same moment has {rate(canary)} tok/s, "
            f"{share(canary / fresh if fresh else None)} of fresh",
            "good",
        )


def rate_of(answer: Answer) -> float:
    """Tokens a second after the first, as the client saw them."""
    if answer.first_at is None or answer.ended_at is None or answer.ended_at <= answer.first_at:
        return 0.0
    return (answer.tokens - 1) / (answer.ended_at - answer.first_at)


def _is_host_slow(lane: dict[str, Any]) -> bool:
    return str((lane.get("verdict") or {}).get("reason", "")).startswith("host_slow")


def _reference_of(stage: Stage) -> int:
    """The daemon's program whose fixed piece of work tells how the machine does."""
    for child in psutil.Process(stage.process.pid).children(recursive=True):
        if str(PROGRAM) in child.cmdline():
            return child.pid
    raise CommandError("the demo's daemon has no host reference")
