"""Memory around a worker's end: measured, waited for, and never respawned into a lack of it."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from pathlib import Path

from supervisor.core.workers import GB, stop_patience_s
from tests.scenarios.daemon_process import RunningDaemon, running_daemon
from tests.scenarios.quick_lanes import config, generation, quick_lane, record
from tests.waiting import wait_until

MB = 1_000_000


async def peak_of(daemon: RunningDaemon, at_least: int) -> int:
    """Wait until the worker's memory has been read."""

    async def fact() -> int:
        worker = (await daemon.lane("worker"))["worker"]
        return int(worker["memory_bytes"]) if worker and worker["memory_bytes"] >= at_least else 0

    return int(await wait_until(fact, 15.0, "the worker's memory to be read"))


async def test_memory_that_is_not_there_blocks_the_start_in_plain_words_and_nothing_is_spawned(tmp_path: Path) -> None:
    lane = quick_lane(memory={"timeout": "1s"})
    async with running_daemon(tmp_path / "daemon", config(worker=lane)) as daemon:
        await daemon.serving("worker")
        assert await daemon.end() == 0
        remember_peak(daemon, 10**15)  # as after a worker whose memory the machine never gave back
        await daemon.start()
        await daemon.listening()
        blocked = await daemon.lane_is("worker", "blocked", 20.0)
        assert "needs 1100000.0 GB of memory" in blocked["reason"]
        assert "available" in blocked["reason"]
        assert blocked["next_action"]
        assert daemon.workers() == []
        status, body = await daemon.post("/api/lanes/worker/stop")
        assert status in (200, 202), body
        await daemon.lane_is("worker", "stopped")


def remember_peak(daemon: RunningDaemon, peak_bytes: int) -> None:
    """Write the lane's measured peak where the daemon keeps it."""
    with contextlib.closing(sqlite3.connect(daemon.state_dir / "history.sqlite")) as database, database:
        [(text,)] = database.execute("SELECT document FROM documents WHERE lane = 'worker' AND key = 'lane'")
        document = json.loads(text) | {"peak_memory_bytes": peak_bytes}
        database.execute("UPDATE documents SET document = ? WHERE key = 'lane'", (json.dumps(document),))


async def test_a_record_tells_the_memory_before_after_the_exit_and_after_the_start(tmp_path: Path) -> None:
    lane = quick_lane({"memory_mb": 200})
    async with running_daemon(tmp_path / "daemon", config(worker=lane)) as daemon:
        await daemon.serving("worker")
        await peak_of(daemon, 150 * MB)
        await daemon.post("/api/lanes/worker/recycle?wait=true")
        done = await record(daemon, "operator")
        memory = done["memory"]
        assert all(isinstance(memory[key], int) and memory[key] > 0 for key in ("before", "after_exit", "after_start"))
        assert done["worker"]["memory_bytes"] > 150 * MB


async def test_a_worker_that_outgrows_its_limit_is_replaced(tmp_path: Path) -> None:
    lane = quick_lane({"memory_mb": 300}, memory={"limit": "250MB", "timeout": "5s"})
    lane["recycle"] = {**lane["recycle"], "min_uptime": "0s"}
    async with running_daemon(tmp_path / "daemon", config(worker=lane)) as daemon:
        done = await record(daemon, "memory", 30.0)
        assert "memory.limit" in done["reason"]
        assert not done["stop"]["killed"]
        await generation(daemon, 2)


def test_patience_grows_with_resident_memory() -> None:
    assert stop_patience_s(None, 0) == 30.0
    assert stop_patience_s(None, 60 * GB) == 60.0
    assert stop_patience_s(None, 424 * GB) > 240.0
    assert stop_patience_s(7.0, 424 * GB) == 7.0
