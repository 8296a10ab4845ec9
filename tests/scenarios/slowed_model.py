"""A real model's worker, slowed from outside under a client that streams: what a try brought, and what must hold."""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from supervisor.cli.demo.reader import Answer, Reader
from supervisor.cli.demo.slower import cpu_seconds
from supervisor.cli.demo.slowing import slowed
from tests.scenarios.daemon_process import RunningDaemon, running_daemon
from tests.waiting import wait_until

CANARY = {
    "every": "4s",
    "prompt_tokens": [64],
    "max_tokens": 24,
    "max_time": "1s",
    "idle_for": "0s",
    "budget": "100%",
    "burst_budget": "100%",
    "force_after": "4s",
}
RECYCLE = {"min_uptime": "0s", "wait_idle": "0s"}
"""What takes hours in life takes minutes here: the same steps, closer together."""

QUESTIONS = ("Why is the sky blue?", "How do bees make honey?", "What does the moon do to the sea?")
FACTOR = 3.0
FRESH_RUNS = 10
TRIES = 3


@dataclass
class Measured:
    """What one try brought."""

    fresh_tok_s: float
    record: dict[str, Any]
    canaries: int
    """Clean ones between the slow-down and the decision; a burst belongs to the canary that asked for it."""
    before: list[Answer]
    during: list[Answer]
    load: float
    """Of the machine, in processes that want a core, as the try ended."""

    @property
    def after_of_fresh(self) -> float:
        return float(self.record["after"]["decode_tok_s"]) / self.fresh_tok_s

    def __str__(self) -> str:
        record = self.record
        longest_s = max(answer.waited_s for answer in self.during)
        return (
            f"fresh {self.fresh_tok_s:.1f} tok/s, slowed {record['before']['decode_tok_s']:.1f}, new worker "
            f"{record['after']['decode_tok_s']:.1f} = {self.after_of_fresh:.0%}; {self.canaries} canaries; "
            f"down {record['downtime_s']:.1f} s; {len(self.during)} answers, longest wait {longest_s:.1f} s; "
            f"load {self.load:.1f}"
        )


async def clean_runs(daemon: RunningDaemon, lane: str) -> list[dict[str, Any]]:
    return [sample for sample in await daemon.samples(lane) if sample["void"] is None]


async def slow_it(daemon: RunningDaemon, name: str) -> Measured:
    """Wait for the baseline, slow the worker to a third until it was replaced, and read all the while."""

    async def is_measured() -> bool:
        return len(await clean_runs(daemon, name)) >= FRESH_RUNS

    await daemon.serving(name, 300)
    await wait_until(is_measured, 180, "the baseline")
    reader = Reader(daemon.url, name, QUESTIONS)
    pid = (await daemon.lane(name))["worker"]["pid"]
    began, used_s = time.monotonic(), cpu_seconds(pid)
    before = await reader.read_each_once()
    cores = (cpu_seconds(pid) - used_s) / (time.monotonic() - began)
    lane, runs = await daemon.lane(name), len(await clean_runs(daemon, name))
    reading = asyncio.ensure_future(reader.read_on())
    try:
        async with slowed(pid, cores / FACTOR):
            records = await wait_until(lambda: daemon.recycles(name), 400, "the recycle to be done")
    finally:
        reader.stop()
        await asyncio.wait_for(reading, 300)
    slow = [run for run in (await clean_runs(daemon, name))[runs:] if run["generation"] == lane["worker"]["generation"]]
    canaries = sum(run["purpose"] == "routine" for run in slow)
    fresh = lane["baseline"]["decode_tok_s"]
    return Measured(fresh, records[0], canaries, before, reader.answers[len(before) :], os.getloadavg()[0])


def is_busy() -> bool:
    """Whether others use this machine too: a lane and its client want less than one core and a half."""
    return os.getloadavg()[0] > (os.cpu_count() or 1)


def assert_nobody_noticed(measured: Measured) -> None:
    assert all(answer.is_whole for answer in (*measured.before, *measured.during))
    texts = {answer.question: answer.sha256 for answer in measured.before}
    assert [answer.sha256 for answer in measured.during] == [texts[answer.question] for answer in measured.during]
    assert measured.record["requests"]["failed"] == measured.record["drain"]["cut"] == 0
    assert measured.record["requests"]["held"] >= 1


def assert_cured(measured: Measured) -> None:
    record = measured.record
    assert (record["trigger"], record["outcome"]) == ("degraded", "cured")
    assert measured.canaries <= 3
    assert measured.after_of_fresh >= 0.9


async def slowed_and_cured(folder: Path, name: str, lane: dict[str, Any], **options: Any) -> Measured:
    """What others do on this machine slows one measurement and not the next: such a try is made again."""
    for attempt in range(TRIES):
        async with running_daemon(folder / str(attempt), {"lanes": {name: lane}}, **options) as daemon:
            measured = await slow_it(daemon, name)
            print(measured)
            assert_nobody_noticed(measured)
            try:
                assert_cured(measured)
            except AssertionError as failure:
                if attempt == TRIES - 1 or not is_busy():
                    raise
                print(f"once more, the machine is busy (load {os.getloadavg()[0]:.1f}): {failure}")
            else:
                return measured
    raise AssertionError("a last try returns or raises")
