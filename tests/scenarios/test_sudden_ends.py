"""Workers that end, fall ill or go deaf at a bad moment: the lane always finds its way back to serving."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tests.fakes import set_knobs
from tests.scenarios.daemon_process import RunningDaemon, running_daemon
from tests.scenarios.quick_lanes import ask, begin, chat, config, generation, inflight, quick_lane, record, tokens
from tests.waiting import wait_until

DEADLY = [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV]
"""SIGTERM from a stranger: the worker says goodbye and exits 0."""


async def pid_of(daemon: RunningDaemon) -> int:
    return int((await daemon.lane("worker"))["worker"]["pid"])


@pytest.mark.parametrize("number", DEADLY, ids=lambda number: number.name)
async def test_a_worker_that_ends_by_itself_while_idle_is_started_again(tmp_path: Path, number: signal.Signals) -> None:
    async with running_daemon(tmp_path / "daemon", config(worker=quick_lane())) as daemon:
        await daemon.serving("worker")
        os.kill(await pid_of(daemon), number)
        await generation(daemon, 2)
        crashed = await record(daemon, "crashed")
        how = "exit code 0" if number is signal.SIGTERM else number.name
        assert how in crashed["reason"]
        assert crashed["outcome"] == "cured"
        assert (await ask(daemon, chat()))[0] == 200


async def test_a_worker_that_dies_while_warming_is_started_again(tmp_path: Path) -> None:
    async with running_daemon(tmp_path / "daemon", config(worker=quick_lane({"tok_s": 4}))) as daemon:
        await daemon.lane_is("worker", "warming")
        os.kill(await pid_of(daemon), signal.SIGKILL)
        await daemon.lane_is("worker", "backing_off", 10.0)

        async def again() -> bool:
            lane = await daemon.lane("worker")
            return bool(lane["worker"]) and lane["worker"]["generation"] == 2 and lane["state"] == "warming"

        await wait_until(again, 20.0)


async def test_a_worker_that_dies_while_draining_ends_its_stream_with_an_error_and_is_started_again(
    tmp_path: Path,
) -> None:
    async with running_daemon(tmp_path / "daemon", config(worker=quick_lane({"tok_s": 50}))) as daemon:
        await daemon.serving("worker")
        streaming = begin(daemon, chat(max_tokens=5_000))
        await tokens(daemon)
        await daemon.post("/api/lanes/worker/recycle")
        await daemon.lane_is("worker", "draining")
        os.kill(await pid_of(daemon), signal.SIGKILL)
        status, text = await streaming
        assert status == 200
        assert '"error"' in text
        assert "[DONE]" not in text
        await generation(daemon, 2)
        [done] = await daemon.recycles("worker")
        assert done["trigger"] == "crashed", "the drain had nothing to do with it"
        assert done["requests"]["failed"] == 1
        assert not done["stop"]["killed"]


async def test_the_record_of_a_crash_counts_the_streams_that_failed_with_it(tmp_path: Path) -> None:
    async with running_daemon(tmp_path / "daemon", config(worker=quick_lane({"tok_s": 50}))) as daemon:
        await daemon.serving("worker")
        streams = [begin(daemon, chat(max_tokens=5_000)) for _ in range(3)]
        await inflight(daemon, 3)
        await tokens(daemon, 30)
        os.kill(await pid_of(daemon), signal.SIGKILL)
        for stream in streams:
            assert '"error"' in (await stream)[1]
        crashed = await record(daemon, "crashed")
        assert crashed["requests"]["failed"] == 3
        assert (await daemon.lane("worker"))["totals"]["failed"] == 3


async def test_a_worker_that_dies_while_stopping_has_simply_stopped(tmp_path: Path) -> None:
    lane = quick_lane({"sigterm": "slow", "term_seconds": 30})
    async with running_daemon(tmp_path / "daemon", config(worker=lane)) as daemon:
        await daemon.serving("worker")
        await daemon.post("/api/lanes/worker/recycle")
        await daemon.lane_is("worker", "stopping")
        os.kill(await pid_of(daemon), signal.SIGKILL)
        await generation(daemon, 2)
        done = await record(daemon, "operator")
        assert done["outcome"] == "replaced"
        assert not done["stop"]["killed"], "not by us"
        assert await daemon.recycles("worker") == [done], "no crash"


async def test_a_worker_that_closes_its_listener_is_replaced_and_a_request_waits_for_the_next(tmp_path: Path) -> None:
    control = tmp_path / "knobs"
    async with running_daemon(tmp_path / "daemon", config(worker=quick_lane({"control": control}))) as daemon:
        await daemon.serving("worker")
        set_knobs(control, listener="closed", ill_generations=1)
        began = time.monotonic()
        status, text = await ask(daemon, chat())
        assert status == 200
        assert "[DONE]" in text
        assert time.monotonic() - began < 15.0
        await generation(daemon, 2)
        await record(daemon, "hung")


@pytest.mark.parametrize("ill", [{"health": "hang"}, {"health": "500"}, {"mode": "hang"}, {"mode": "500"}], ids=str)
async def test_a_worker_that_never_gets_ready_is_given_its_time_and_then_tried_anew(
    tmp_path: Path, ill: dict[str, Any]
) -> None:
    lane = quick_lane(ill | {"ill_generations": 1}, start_timeout="2s")
    async with running_daemon(tmp_path / "daemon", config(worker=lane)) as daemon:
        began = time.monotonic()
        await generation(daemon, 2, 40.0)
        assert time.monotonic() - began >= 2.0


async def test_a_worker_that_says_it_will_never_serve_is_tried_anew_at_once(tmp_path: Path) -> None:
    lane = quick_lane({"health_status": "unavailable", "ill_generations": 1}, preset="mlx-lm", start_timeout="10m")
    async with running_daemon(tmp_path / "daemon", config(worker=lane)) as daemon:
        await generation(daemon, 2, 30.0)


async def test_a_serving_worker_that_says_it_will_never_serve_again_is_hung(tmp_path: Path) -> None:
    control = tmp_path / "knobs"
    lane = quick_lane({"control": control}, preset="mlx-lm")
    async with running_daemon(tmp_path / "daemon", config(worker=lane)) as daemon:
        await daemon.serving("worker")
        set_knobs(control, health_status="unavailable", ill_generations=1)
        found = await record(daemon, "hung")
        assert "unavailable" in found["reason"]
        await generation(daemon, 2)


@pytest.mark.parametrize("answer", ["429", "hang"])
async def test_a_worker_that_is_full_of_nobodys_work_is_busy_first_and_hung_in_the_end(
    tmp_path: Path, answer: str
) -> None:
    control = tmp_path / "knobs"
    lane = quick_lane({"control": control}, hang={"after": "4s", "pulse": "500ms"})
    async with running_daemon(tmp_path / "daemon", config(worker=lane)) as daemon:
        await daemon.serving("worker")
        set_knobs(control, mode=answer, ill_generations=1)
        began = time.monotonic()
        await record(daemon, "hung")
        took_s = time.monotonic() - began
        assert took_s > 4.0 if answer == "429" else took_s > 1.0
