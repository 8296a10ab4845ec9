"""How workers are stopped: patiently, whole families at a time, and never by SIGKILL for being slow."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.fakes import fake_command, set_knobs
from tests.scenarios.daemon_process import running_daemon
from tests.scenarios.quick_lanes import begin, chat, config, generation, quick_lane, record, tokens
from tests.waiting import wait_until

ALONE = """
import fcntl, os, sys
lock = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
os.set_inheritable(lock, True)
try:
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    os.write(os.open(sys.argv[1] + ".clash", os.O_WRONLY | os.O_CREAT | os.O_APPEND), b"two workers at once\\n")
    sys.exit(77)
os.execv(sys.argv[2], sys.argv[2:])
"""
"""Runs a worker, and tells of it if another worker, or a child of one, still lives."""


def alone(folder: Path, **knobs: Any) -> list[str]:
    """The command of a fake worker that refuses to run beside another one of its lane."""
    script = folder / "alone.py"
    script.write_text(ALONE)
    return [sys.executable, str(script), str(folder / "lock"), *fake_command(**knobs)]


async def test_a_slow_goodbye_is_waited_for_and_not_killed(tmp_path: Path) -> None:
    lane = quick_lane({"sigterm": "slow", "term_seconds": 4}, stop_timeout="20s")
    async with running_daemon(tmp_path / "daemon", config(worker=lane)) as daemon:
        await daemon.serving("worker")
        status, _ = await daemon.post("/api/lanes/worker/recycle?wait=true")
        assert status == 200
        done = await record(daemon, "operator")
        assert done["stop"]["signal"] == "TERM"
        assert not done["stop"]["killed"]
        assert done["stop"]["took_s"] >= 4.0


@pytest.mark.parametrize("kill", ["if_hung", "never"])
async def test_a_worker_that_ignores_its_signal_is_killed_after_patience_only_where_that_is_allowed(
    tmp_path: Path, kill: str
) -> None:
    lane = quick_lane({"sigterm": "ignored", "ill_generations": 1}, stop_timeout="2s", kill=kill)
    async with running_daemon(tmp_path / "daemon", config(worker=lane)) as daemon:
        pid = (await daemon.serving("worker"))["worker"]["pid"]
        began = time.monotonic()
        assert (await daemon.post("/api/lanes/worker/recycle"))[0] in (200, 202)
        if kill == "if_hung":
            done = await record(daemon, "operator")
            assert done["stop"]["killed"]
            assert 2.0 <= done["stop"]["took_s"] < 6.0, "patience, and not the prefix cache's time on top of it"
            return
        blocked = await daemon.lane_is("worker", "blocked", 10.0)
        assert time.monotonic() - began >= 2.0
        assert f"kill -9 {pid}" in blocked["reason"]
        assert psutil.pid_exists(pid)
        os.kill(pid, signal.SIGKILL)
        await generation(daemon, 2)


@pytest.mark.parametrize("own_session", [False, True], ids=["in the group", "in a session of its own"])
@pytest.mark.parametrize("how", ["recycled", "crashed"])
async def test_a_grandchild_that_holds_the_port_ends_with_its_worker(
    tmp_path: Path, free_port: int, own_session: bool, how: str
) -> None:
    knobs = {"grandchild": "port", "grandchild_setsid": own_session, "grandchild_ignores_term": True}
    command = [part.replace("{port}", str(free_port)) for part in alone(tmp_path, **knobs)]
    lane = quick_lane(command=command, port=free_port, stop_timeout="5s")
    async with running_daemon(tmp_path / "daemon", config(worker=lane)) as daemon:
        pid = (await daemon.serving("worker"))["worker"]["pid"]
        children = psutil.Process(pid).children()
        assert children
        if how == "recycled":
            await daemon.post("/api/lanes/worker/recycle")
        else:
            os.kill(pid, signal.SIGKILL)
        await generation(daemon, 2, 40.0)
        assert not any(child.is_running() for child in children)
        assert not (tmp_path / "lock.clash").exists()


async def test_a_grandchild_that_may_not_be_killed_blocks_the_lane_and_is_named(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    knobs = {"grandchild": "idle", "grandchild_ignores_term": True, "grandchild_pid_file": pid_file}
    command = alone(tmp_path, **knobs)
    lane = quick_lane(command=command, stop_timeout="5s", kill="never", memory={"timeout": "1s"})
    async with running_daemon(tmp_path / "daemon", config(worker=lane)) as daemon:
        pid = (await daemon.serving("worker"))["worker"]["pid"]
        child = int(pid_file.read_text())
        os.kill(pid, signal.SIGKILL)
        blocked = await daemon.lane_is("worker", "blocked", 30.0)
        assert f"kill -9 {child}" in blocked["reason"]
        assert not (tmp_path / "lock.clash").exists()
        os.kill(child, signal.SIGKILL)
        await generation(daemon, 2)
        os.kill(int(pid_file.read_text()), signal.SIGKILL)  # nobody else may


async def test_in_place_there_are_never_two_workers_of_a_lane(tmp_path: Path) -> None:
    control = tmp_path / "knobs"
    command = alone(tmp_path, sigterm="slow", term_seconds=0.5, control=control)
    async with running_daemon(tmp_path / "daemon", config(worker=quick_lane(command=command))) as daemon:
        await daemon.serving("worker")
        for number in range(2, 6):
            await daemon.post("/api/lanes/worker/recycle?wait=true")
            await generation(daemon, number)
        os.kill((await daemon.lane("worker"))["worker"]["pid"], signal.SIGKILL)
        await generation(daemon, 6)
        set_knobs(control, mode="hang", ill_generations=6)
        await generation(daemon, 7)
        assert not (tmp_path / "lock.clash").exists()


async def test_the_daemon_never_imports_mlx(tmp_path: Path) -> None:
    async with running_daemon(tmp_path / "daemon", config(worker=quick_lane())) as daemon:
        await daemon.serving("worker")
        maps = Path(f"/proc/{daemon.pid}/maps")
        assert "mlx" not in maps.read_text()


async def test_an_endless_stream_is_cut_at_shutdown_with_an_error_event(tmp_path: Path) -> None:
    lane = quick_lane({"tok_s": 50})
    async with running_daemon(tmp_path / "daemon", config(worker=lane)) as daemon:
        await daemon.serving("worker")
        streaming = begin(daemon, chat(max_tokens=100_000), 60.0)
        await tokens(daemon)
        began = time.monotonic()
        assert await daemon.end() == 0
        assert 3.0 <= time.monotonic() - began < 10.0, "fleet.shutdown_timeout is 3 s"
        text = (await streaming)[1]
        assert '"error"' in text.rstrip().rpartition("\n\n")[2]
        assert "[DONE]" not in text
        assert daemon.workers() == []


async def test_a_second_signal_stops_at_once(tmp_path: Path) -> None:
    whole = config(worker=quick_lane({"tok_s": 50})) | {"fleet": {"shutdown_timeout": "60s"}}
    async with running_daemon(tmp_path / "daemon", whole) as daemon:
        await daemon.serving("worker")
        streaming = begin(daemon, chat(max_tokens=100_000), 60.0)
        await tokens(daemon)
        assert daemon.process
        daemon.process.send_signal(signal.SIGTERM)
        await daemon.lane_is("worker", "draining")
        began = time.monotonic()
        daemon.process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(daemon.process.wait(), 20.0) == 0
        assert time.monotonic() - began < 8.0
        assert '"error"' in (await streaming)[1]
        assert daemon.workers() == []


async def test_a_recycle_for_slowness_is_aborted_by_an_endless_stream_and_never_cuts_it(tmp_path: Path) -> None:
    recycle = {"min_uptime": "0s", "wait_idle": "0s", "max_hold": "2s", "after": {"generated_tokens": 40}}
    lane = quick_lane({"tok_s": 50}, recycle=recycle)
    async with running_daemon(tmp_path / "daemon", config(worker=lane)) as daemon:
        await daemon.serving("worker")
        streaming = begin(daemon, chat(max_tokens=500), 60.0)
        aborted = await record(daemon, "budget")
        assert aborted["outcome"] == "aborted"
        assert aborted["drain"]["cut"] == 0
        await wait_until(streaming.done, 30.0, "the stream to end")
        status, text = await streaming
        assert status == 200
        assert "[DONE]" in text
        assert '"error"' not in text


@pytest.mark.parametrize("keeps_generating", [False, True])
async def test_a_client_that_leaves_counts_as_drained_at_once(tmp_path: Path, keeps_generating: bool) -> None:
    lane = quick_lane({"tok_s": 20, "keep_generating": keeps_generating, "sigterm": "now"})
    async with running_daemon(tmp_path / "daemon", config(worker=lane)) as daemon:
        await daemon.serving("worker")
        streaming = begin(daemon, chat(max_tokens=1_000), 60.0)
        await tokens(daemon)
        status, _ = await daemon.post("/api/lanes/worker/recycle")
        assert status in (200, 202)
        await daemon.lane_is("worker", "draining")
        streaming.cancel()
        done = await record(daemon, "operator")
        assert done["drain"] == done["drain"] | {"cut": 0, "inflight": 1}
        assert done["drain"]["waited_s"] < 5.0, "its stream would have lasted 50 s"
        assert done["outcome"] == "replaced"
