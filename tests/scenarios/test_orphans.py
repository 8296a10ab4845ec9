"""What is left when the daemon is killed at any moment: nothing five seconds later, and the next daemon serves."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.scenarios.daemon_process import RunningDaemon, running_daemon
from tests.scenarios.quick_lanes import begin, chat, config, quick_lane, tokens
from tests.waiting import wait_until

KILLS = 20
GONE_WITHIN_S = 5.0


async def moment_passes(daemon: RunningDaemon, seconds: float) -> None:
    due = time.monotonic() + seconds
    await wait_until(lambda: time.monotonic() >= due, seconds + 5.0)


def lives(process: psutil.Process) -> bool:
    """A zombie that init has not collected yet does not."""
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE


async def state_of(daemon: RunningDaemon) -> str:
    """The lane's state, or that the daemon does not even listen yet."""
    if not await daemon.status("/healthz", expect=200):
        return "importing"
    return str((await daemon.lane("worker"))["state"])


async def no_worker_left(daemon: RunningDaemon) -> float:
    """Seconds until none lives; fails after five."""
    began = time.monotonic()
    await wait_until(lambda: not daemon.workers(), GONE_WITHIN_S, "the workers of a killed daemon to end")
    return time.monotonic() - began


@pytest.mark.slow
@pytest.mark.timeout(400)
async def test_after_kill_9_at_20_random_moments_no_worker_lives_and_the_next_daemon_serves(tmp_path: Path) -> None:
    dice = random.Random(20)
    knobs = {"start_delay": 0.3, "load_delay": 0.3, "grandchild": "idle", "grandchild_setsid": True}
    lane = quick_lane(knobs | {"sigterm": "slow", "term_seconds": 0.5})
    seen: dict[str, int] = {}
    longest_s = 0.0
    async with running_daemon(tmp_path / "daemon", config(worker=lane)) as daemon:
        for number in range(KILLS):
            if number % 2:  # half of them in the life of a serving lane: serving, draining, stopping, starting again
                await daemon.serving("worker")
                await daemon.post("/api/lanes/worker/recycle")
                await moment_passes(daemon, dice.uniform(0.0, 3.0))
            else:  # half of them on the way up: importing, spawning, loading, warming
                await moment_passes(daemon, dice.uniform(0.0, 3.5))
            state = await state_of(daemon)
            await daemon.kill()
            longest_s = max(longest_s, await no_worker_left(daemon))
            seen[state] = seen.get(state, 0) + 1
            await daemon.start()
        await daemon.serving("worker")
        print(f"{KILLS} kills, in {seen}; 0 workers alive, the last one gone after {longest_s:.1f} s")
        assert len(seen) >= 3


@pytest.mark.parametrize("state", ["starting", "warming", "serving", "draining", "stopping", "blocked"])
async def test_a_daemon_killed_in_this_state_leaves_nobody(tmp_path: Path, state: str) -> None:
    knobs: dict[str, Any] = {"tok_s": 60}
    keys: dict[str, Any] = {}
    if state == "starting":
        knobs["load_delay"] = 30
    if state == "warming":
        knobs["tok_s"] = 3
    if state == "stopping":
        knobs |= {"sigterm": "slow", "term_seconds": 2}
    if state == "blocked":
        knobs |= {"sigterm": "ignored"}
        keys = {"kill": "never", "stop_timeout": "1s"}
    async with running_daemon(tmp_path / "daemon", config(worker=quick_lane(knobs, **keys))) as daemon:
        if state in ("starting", "warming"):
            await wait_until(daemon.workers, 20.0)
            await daemon.lane_is("worker", state)
        else:
            await daemon.serving("worker")
        streaming = None
        if state == "draining":
            streaming = begin(daemon, chat(max_tokens=10_000))
            await tokens(daemon)
        if state in ("draining", "stopping", "blocked"):
            await daemon.post("/api/lanes/worker/recycle")
            await daemon.lane_is("worker", state)
        await daemon.kill()
        if streaming:
            streaming.cancel()
        if state == "blocked":  # it may not be killed, so it is named to whoever comes next
            left = daemon.workers()
            await daemon.start()
            blocked = await daemon.lane_is("worker", "blocked", 90.0)
            assert str(left[0]) in blocked["reason"]
            os.kill(left[0], signal.SIGKILL)
            await daemon.lane_is("worker", "serving")
            os.kill((await daemon.lane("worker"))["worker"]["pid"], signal.SIGKILL)
            return
        await no_worker_left(daemon)


async def test_a_worker_that_ignores_its_signal_gets_its_patience_from_the_tether_and_is_then_killed(
    tmp_path: Path,
) -> None:
    lane = quick_lane({"sigterm": "ignored"}, stop_timeout="2s")
    async with running_daemon(tmp_path / "daemon", config(worker=lane)) as daemon:
        await daemon.serving("worker")
        began = time.monotonic()
        await daemon.kill()
        await wait_until(lambda: not daemon.workers(), 8.0, "it to be killed")
        assert time.monotonic() - began >= 2.0


@pytest.mark.parametrize("port", ["fixed", "any"])
async def test_a_worker_that_lost_daemon_and_tether_is_reaped_by_the_next_daemon(
    tmp_path: Path, free_port: int, port: str
) -> None:
    lane = quick_lane()
    if port == "fixed":
        lane["command"] = [part.replace("{port}", str(free_port)) for part in lane["command"]]
        lane["port"] = free_port
    async with running_daemon(tmp_path / "daemon", config(worker=lane)) as daemon:
        pid = (await daemon.serving("worker"))["worker"]["pid"]
        worker = psutil.Process(pid)
        tether = worker.parent()
        assert tether
        assert "tether.py" in " ".join(tether.cmdline())
        tether.suspend()  # it must not see the daemon die
        await daemon.kill()
        tether.kill()
        assert worker.is_running()
        await daemon.start()
        again = await daemon.serving("worker")
        assert not lives(worker)
        assert again["worker"]["pid"] != pid
        assert again["worker"]["generation"] == 2
        assert len(daemon.workers()) == 1


async def test_a_stranger_with_the_pid_of_a_worker_is_left_alone(tmp_path: Path, fake_worker: Any) -> None:
    stranger = await fake_worker()
    async with running_daemon(tmp_path / "daemon", config(worker=quick_lane())) as daemon:
        await daemon.serving("worker")
        ledger = daemon.state_dir / "workers.json"
        pid = str((await daemon.lane("worker"))["worker"]["pid"])
        text = ledger.read_text()
        await daemon.kill()
        await no_worker_left(daemon)
        assert pid in text
        ledger.write_text(text.replace(pid, str(stranger.pid)))
        await daemon.start()
        await daemon.serving("worker")
        assert stranger.process.returncode is None
        assert psutil.Process(stranger.pid).status() != psutil.STATUS_ZOMBIE
