"""A lane on a server that someone else runs: watched, restarted by its owner's command alone, and never ended."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import RunningWorker, find_free_port, start_worker
from tests.fakes import fake_command, set_knobs
from tests.scenarios.daemon_process import RunningDaemon, running_daemon
from tests.scenarios.quick_lanes import HANG, RESTING_CANARY, ask, begin, chat, config, record
from tests.waiting import wait_until


def attached_lane(worker: RunningWorker, **keys: Any) -> dict[str, Any]:
    recycle = {"min_uptime": "0s", "wait_idle": "0s"}
    return {"attach": worker.url, "canary": RESTING_CANARY, "stop_timeout": "5s", "recycle": recycle, **keys}


@asynccontextmanager
async def attached(
    folder: Path, *, knobs: dict[str, Any] | None = None, **keys: Any
) -> AsyncIterator[tuple[RunningDaemon, RunningWorker]]:
    """A daemon with one lane on a server of ours, which serves; the server outlives the daemon."""
    worker = await start_worker(fake_command(**(knobs or {})), find_free_port())
    try:
        async with running_daemon(folder, config(worker=attached_lane(worker, **keys))) as daemon:
            await daemon.serving("worker")
            yield daemon, worker
            assert worker.process.returncode is None, "it is not ours to end"
    finally:
        await worker.end()


def counting(folder: Path) -> tuple[list[str], Path]:
    """A restart command that only writes a line, and where."""
    marks = folder / "restarts"
    return [sys.executable, "-c", f"open({str(marks)!r}, 'a').write('restarted\\n')"], marks


async def test_the_end_of_the_daemon_and_a_stop_leave_the_server_alone(tmp_path: Path) -> None:
    command, marks = counting(tmp_path)
    async with attached(tmp_path / "daemon", restart_command=command) as (daemon, _):
        assert (await daemon.post("/api/lanes/worker/stop?wait=true"))[0] == 200
        assert (await daemon.lane("worker"))["state"] == "stopped"
        assert (await daemon.post("/api/lanes/worker/start?wait=true"))[0] == 200
        assert (await ask(daemon, chat()))[0] == 200
        assert await daemon.end() == 0
    assert not marks.exists()


async def test_a_recycle_runs_the_restart_command_once(tmp_path: Path) -> None:
    command, marks = counting(tmp_path)
    async with attached(tmp_path / "daemon", restart_command=command) as (daemon, _):
        status, answer = await daemon.post("/api/lanes/worker/recycle?wait=true")
        assert (status, answer["recycle"]["outcome"]) == (200, "replaced")
        assert marks.read_text() == "restarted\n"


async def test_without_a_restart_command_nobody_can_ask_for_a_recycle(tmp_path: Path) -> None:
    async with attached(tmp_path) as (daemon, _):
        status, answer = await daemon.post("/api/lanes/worker/recycle")
        assert status == 409
        assert "restart_command" in answer["error"]["message"]


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["/does/not/exist"], "/does/not/exist"),
        ([sys.executable, "-c", "raise SystemExit(3)"], "restart_command failed with exit code 3"),
    ],
    ids=["cannot run", "fails"],
)
async def test_a_failing_restart_command_is_a_failed_recycle_and_the_old_server_serves_on(
    tmp_path: Path, command: list[str], words: str
) -> None:
    async with attached(tmp_path, restart_command=command) as (daemon, _):
        await daemon.post("/api/lanes/worker/recycle")
        failed = await record(daemon, "operator")
        assert failed["outcome"] == "failed"
        assert words in failed["next"]
        await daemon.serving("worker")
        assert (await ask(daemon, chat()))[0] == 200


async def test_a_hang_that_only_its_owner_can_mend_blocks_the_lane_until_the_server_is_well(tmp_path: Path) -> None:
    control = tmp_path / "knobs"
    async with attached(tmp_path / "daemon", knobs={"control": control}, hang=HANG) as (daemon, _):
        set_knobs(control, mode="hang", health="hang")
        blocked = await daemon.lane_is("worker", "blocked", 20.0)
        assert "no restart_command" in blocked["reason"]
        assert (await record(daemon, "hung"))["outcome"] == "failed"
        waiting = begin(daemon, chat())
        set_knobs(control)
        await daemon.serving("worker", 20.0)
        assert (await waiting)[0] == 200


async def test_a_server_that_is_not_there_is_waited_for_and_taken_up_when_it_comes(tmp_path: Path) -> None:
    port = find_free_port()
    lane = {"attach": f"http://127.0.0.1:{port}", "canary": RESTING_CANARY, "start_timeout": "1s"}
    async with running_daemon(tmp_path / "daemon", config(worker=lane)) as daemon:
        await daemon.lane_is("worker", "blocked", 10.0)
        await wait_until(lambda: reason_has(daemon, "it does not listen yet"), 10.0)
        worker = await start_worker(fake_command(), port)
        try:
            await daemon.serving("worker", 10.0)
            assert (await ask(daemon, chat()))[0] == 200
            assert await daemon.end(15.0) == 0
        finally:
            await worker.end()


async def test_the_end_of_the_daemon_waits_for_no_server_that_is_not_there(tmp_path: Path) -> None:
    lane = {"attach": f"http://127.0.0.1:{find_free_port()}", "start_timeout": "1s"}
    async with running_daemon(tmp_path / "daemon", config(worker=lane)) as daemon:
        await daemon.lane_is("worker", "blocked", 10.0)
        assert await daemon.end(15.0) == 0


async def test_a_server_that_its_owner_restarts_is_a_new_worker_and_no_crash(tmp_path: Path) -> None:
    first = await start_worker(fake_command(), find_free_port())
    try:
        async with running_daemon(tmp_path, config(worker=attached_lane(first))) as daemon:
            old = (await daemon.serving("worker"))["worker"]
            await first.end()
            second = await start_worker(fake_command(), first.port)
            try:
                found = await record(daemon, "operator")
                assert (found["outcome"], found["cause"]["kind"]) == ("replaced", "none")
                assert f"pid {old['pid']} is gone" in found["cause"]["evidence"][0]
                new = (await daemon.serving("worker"))["worker"]
                assert (new["pid"], new["generation"]) == (second.pid, old["generation"] + 1)
                assert (await ask(daemon, chat()))[0] == 200
            finally:
                await second.end()
    finally:
        await first.end()


async def test_its_output_is_not_ours_to_show(tmp_path: Path) -> None:
    async with attached(tmp_path) as (daemon, _):
        for path in ("logs", "logs?follow=true"):
            status = await wait_until(lambda path=path: _status(daemon, f"/api/lanes/worker/{path}"), 10)
            assert status == 409


async def reason_has(daemon: RunningDaemon, words: str) -> bool:
    return words in (await daemon.lane("worker"))["reason"]


async def _status(daemon: RunningDaemon, path: str) -> int:
    assert daemon.session
    async with daemon.session.get(daemon.url + path, headers=daemon.headers()) as answer:
        return answer.status
