"""An agent's long prompt is not prefilled again because its worker was replaced."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.scenarios.daemon_process import RunningDaemon, running_daemon
from tests.scenarios.quick_lanes import config, quick_lane
from tests.waiting import wait_until


def lane_with(**keys: Any) -> dict[str, Any]:
    return config(worker=quick_lane(**keys))


PROMPT = "tell me all about the fresh lane " * 120


async def cached_tokens(daemon: RunningDaemon) -> int:
    body = {"model": "worker", "max_tokens": 4, "messages": [{"role": "user", "content": PROMPT}]}
    status, answer = await daemon.post("/v1/chat/completions", body)
    assert status == 200, answer
    return int(answer["usage"]["prompt_tokens_details"]["cached_tokens"])


async def recycled(daemon: RunningDaemon) -> dict[str, Any]:
    status, answer = await daemon.post("/api/lanes/worker/recycle?wait=true")
    assert status == 200, answer
    records = await wait_until(lambda: daemon.recycles("worker"), 10, "the record")
    return dict(records[0])


@pytest.mark.parametrize("replace", ["in_place", "overlap"])
async def test_a_recycle_hands_the_prefix_cache_on_and_the_record_says_how_much(tmp_path: Path, replace: str) -> None:
    async with running_daemon(tmp_path, lane_with(replace=replace)) as daemon:
        await daemon.serving("worker")
        assert await cached_tokens(daemon) == 0
        record = await recycled(daemon)
        assert record["replace"] == replace
        facts = record["prefix_cache"]
        assert facts["saved_tokens"] == facts["restored_tokens"] > 0
        assert await cached_tokens(daemon) > 500
        assert not (daemon.state_dir / "prefix" / "worker").exists()


async def test_a_stop_and_a_start_keep_the_prefix_cache_also_over_a_restart_of_the_daemon(tmp_path: Path) -> None:
    async with running_daemon(tmp_path, lane_with()) as daemon:
        await daemon.serving("worker")
        await cached_tokens(daemon)
        await daemon.post("/api/lanes/worker/stop?wait=true")
        await daemon.post("/api/lanes/worker/start?wait=true")
        assert await cached_tokens(daemon) > 500
        assert await daemon.end() == 0
        await daemon.start()
        await daemon.serving("worker")
        assert await cached_tokens(daemon) > 500


async def test_a_handoff_of_zero_bytes_saves_nothing(tmp_path: Path) -> None:
    async with running_daemon(tmp_path, lane_with(prefix={"handoff": "0B"})) as daemon:
        await daemon.serving("worker")
        await cached_tokens(daemon)
        assert (await recycled(daemon))["prefix_cache"] == {"saved_tokens": 0, "restored_tokens": 0}
        assert await cached_tokens(daemon) == 0


@pytest.mark.parametrize("how", ["none", "500", "hang"])
async def test_a_worker_that_cannot_save_is_recycled_all_the_same_and_not_much_later(tmp_path: Path, how: str) -> None:
    lane = lane_with(worker={"prefix": how}, prefix={"timeout": "1s"})
    async with running_daemon(tmp_path, lane) as daemon:
        await daemon.serving("worker")
        await cached_tokens(daemon)
        record = await recycled(daemon)
        assert record["outcome"] == "replaced"
        assert record["prefix_cache"] == {"saved_tokens": 0, "restored_tokens": 0}
        assert record["downtime_s"] < 8
        assert record["stop"]["took_s"] < 1  # the time for saving is no part of it
        assert not record["stop"]["killed"]
        assert ("prefix_save_failed" in daemon.log()) == (how != "none")


async def test_a_second_signal_does_not_wait_for_a_save(tmp_path: Path) -> None:
    lane = lane_with(worker={"prefix": "hang"}, prefix={"timeout": "60s"})
    async with running_daemon(tmp_path, lane) as daemon:
        await daemon.serving("worker")
        assert daemon.process
        daemon.process.terminate()
        await wait_until(lambda: '"state": "stopping"' in daemon.log(), 10, "the save")
        daemon.process.terminate()
        assert await asyncio.wait_for(daemon.process.wait(), 10) == 0
        assert not daemon.workers()


@pytest.mark.slow
async def test_a_hung_worker_is_not_asked_to_save(tmp_path: Path) -> None:
    lane = lane_with(prefix={"timeout": "60s"})
    async with running_daemon(tmp_path, lane) as daemon:
        snapshot = await daemon.serving("worker")
        os.kill(snapshot["worker"]["pid"], signal.SIGSTOP)
        records = await wait_until(lambda: daemon.recycles("worker"), 50, "a record")
        assert records[0]["trigger"] == "hung"
        assert "prefix_save_failed" not in daemon.log()


@pytest.mark.model
@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_our_engine_hands_its_prefixes_on_and_the_next_worker_proves_it(tmp_path: Path) -> None:
    canary = {"every": "1h", "prompt_tokens": [64], "max_tokens": 12, "idle_for": "0s"}
    lane = {"model": "smollm2-135m", "replace": "in_place", "canary": canary, "recycle": {"wait_idle": "0s"}}
    async with running_daemon(tmp_path, config(worker=lane)) as daemon:
        await daemon.serving("worker", 180)
        assert await cached_tokens(daemon) < 100  # what the template and the canaries have in common with it
        record = await recycled(daemon)
        facts = record["prefix_cache"]
        assert facts["restored_tokens"] == facts["saved_tokens"] > 500
        assert await cached_tokens(daemon) > 500
