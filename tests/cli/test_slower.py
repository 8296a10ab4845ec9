"""Slowing a process from outside, as the demo does: by a third of its processor time, and never left stopped."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator

import psutil
import pytest

from supervisor.cli.demo.slower import cpu_seconds
from supervisor.cli.demo.slowing import slowed
from tests.waiting import wait_until


@pytest.fixture
async def spinner() -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(sys.executable, "-S", "-c", "while True: pass")
    yield process
    if process.returncode is None:
        process.kill()
    await process.wait()


def is_stopped(pid: int) -> bool:
    return psutil.Process(pid).status() == psutil.STATUS_STOPPED


async def seconds_for(pid: int, cpu_s: float) -> float:
    loop = asyncio.get_running_loop()
    began, used_s = loop.time(), cpu_seconds(pid)
    await wait_until(lambda: cpu_seconds(pid) - used_s >= cpu_s, 30)
    return loop.time() - began


async def test_a_slowed_process_gets_the_processor_time_that_was_named(spinner: asyncio.subprocess.Process) -> None:
    async with slowed(spinner.pid, 0.1):
        await wait_until(lambda: is_stopped(spinner.pid), 20)
        assert await seconds_for(spinner.pid, 0.2) > 0.2 / 0.1 * 0.6
    assert not is_stopped(spinner.pid)


async def test_a_process_runs_on_when_the_one_that_slowed_it_is_told_to_end(
    spinner: asyncio.subprocess.Process,
) -> None:
    slower = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "supervisor.cli.demo.slower", str(spinner.pid), "0.001"),
        stdin=asyncio.subprocess.PIPE,
    )
    await wait_until(lambda: is_stopped(spinner.pid), 20)
    slower.terminate()
    assert await asyncio.wait_for(slower.wait(), 10) == 0
    assert not is_stopped(spinner.pid)


async def test_slowing_a_process_that_ends_meanwhile_is_no_failure(spinner: asyncio.subprocess.Process) -> None:
    async with slowed(spinner.pid, 0.1):
        await wait_until(lambda: is_stopped(spinner.pid), 20)
        os.kill(spinner.pid, signal.SIGKILL)
        await asyncio.wait_for(spinner.wait(), 10)
