"""Before silence counts against a worker this daemon asks whether it was itself that did not listen."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import psutil

from tests.scenarios.daemon_process import RunningDaemon, running_daemon
from tests.scenarios.quick_lanes import begin, chat, config, generation, quick_lane, record, tokens
from tests.waiting import wait_until


async def frozen(daemon: RunningDaemon, seconds: float) -> None:
    """Stop the daemon for so long, as a suspend or a debugger would."""
    os.kill(daemon.pid, signal.SIGSTOP)
    due = time.monotonic() + seconds
    try:
        await wait_until(lambda: time.monotonic() >= due, seconds + 5.0)
    finally:
        os.kill(daemon.pid, signal.SIGCONT)


async def test_a_daemon_that_stood_still_blames_no_worker_busy_or_idle(tmp_path: Path) -> None:
    busy, idle = quick_lane({"tok_s": 40}), quick_lane({"tok_s": 40})
    async with running_daemon(tmp_path / "daemon", config(worker=busy, idle=idle)) as daemon:
        await daemon.serving("worker")
        await daemon.serving("idle")
        streaming = begin(daemon, chat(max_tokens=400))
        await tokens(daemon)
        for _ in range(2):
            sent = await tokens(daemon)
            await frozen(daemon, 4.0)  # twice the patience, four pulses
            await tokens(daemon, sent)
        status, text = await streaming
        assert status == 200
        assert "[DONE]" in text
        assert await daemon.recycles("worker") == await daemon.recycles("idle") == []
        assert (await daemon.lane("idle"))["worker"]["generation"] == 1


async def test_a_worker_whose_tether_is_killed_is_replaced_and_never_outlives_the_daemon(tmp_path: Path) -> None:
    async with running_daemon(tmp_path / "daemon", config(worker=quick_lane())) as daemon:
        pid = (await daemon.serving("worker"))["worker"]["pid"]
        tether = psutil.Process(pid).parent()
        assert tether
        tether.kill()
        await generation(daemon, 2)
        await record(daemon, "crashed")
        assert len(daemon.workers()) == 1
        assert pid not in daemon.workers()
