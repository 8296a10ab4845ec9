"""An operator's wish is kept, a loop ends, and a bare environment is enough."""

from __future__ import annotations

import asyncio
import os
import resource
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.fakes import expected_text
from tests.scenarios.daemon_process import RunningDaemon, running_daemon
from tests.scenarios.quick_lanes import ask, begin, chat, config, inflight, quick_lane
from tests.scenarios.streaming_clients import Answer, read
from tests.waiting import wait_until

STATES: dict[str, dict[str, Any]] = {
    "serving": {},
    "starting": {"worker": {"start_delay": 60}},
    "warming": {"worker": {"tok_s": 3}, "canary": {"every": "1h", "max_tokens": 24, "prompt_tokens": [256]}},
    "backing_off": {"worker": {"exit_code": 3}},
    "failed": {"command": ["/nowhere/at-all", "{port}"]},
    "unloaded": {"start": "on_demand"},
    "draining": {"worker": {"tok_s": 5}},
    "stopping": {"worker": {"sigterm": "slow", "term_seconds": 2}},
    "blocked": {"worker": {"sigterm": "ignored"}, "kill": "never", "stop_timeout": "500ms"},
    "drained": {},
}


async def reach(daemon: RunningDaemon, state: str) -> asyncio.Task[Any] | None:
    """Bring the lane into this state; a request that keeps it there."""
    request = None
    if state in ("serving", "draining", "stopping", "blocked", "drained"):
        await daemon.serving("worker")
    if state == "draining":
        request = begin(daemon, chat("long", max_tokens=20))
        await inflight(daemon, 1)
    if state in ("draining", "stopping", "blocked"):
        await daemon.post("/api/lanes/worker/recycle")
    if state == "drained":
        await daemon.post("/api/lanes/worker/drain?wait=true")
    await daemon.lane_is("worker", state)
    return request


@pytest.mark.slow
@pytest.mark.parametrize("state", STATES)
async def test_a_stop_in_any_state_stays_a_stop_also_over_a_restart_of_the_daemon(tmp_path: Path, state: str) -> None:
    lane = quick_lane(**{"stop_timeout": "5s", **STATES[state]})
    async with running_daemon(tmp_path, config(worker=lane, other=quick_lane())) as daemon:
        request = await reach(daemon, state)
        status, answer = await daemon.post("/api/lanes/worker/stop")
        assert status == 202, answer
        if request:
            status, text = await request
            assert (status, text.count("[DONE]")) == (200, 1)
        if state == "blocked":  # a worker that may not be killed and will not go
            pid = (await daemon.lane("worker"))["worker"]["pid"]
            os.kill(pid, 9)
        await daemon.lane_is("worker", "stopped")
        assert (await ask(daemon, chat()))[0] == 503
        assert await daemon.end() == 0
        await daemon.start()
        await daemon.serving("other")
        snapshot = await daemon.lane("worker")
        assert (snapshot["state"], snapshot["reason"]) == ("stopped", "stopped by a person")
        await wait_until(lambda: daemon.status("/readyz", expect=200), 5, "a stopped lane not to count")
        if state in ("serving", "unloaded"):
            assert (await daemon.post("/api/lanes/worker/start"))[0] == 202
            status, text = await ask(daemon, chat("up again"))
            assert (status, text.count("[DONE]")) == (200, 1)


@pytest.mark.slow
async def test_a_crash_loop_backs_off_and_fails_and_touches_no_other_lane(tmp_path: Path) -> None:
    lanes = config(looping=quick_lane({"exit_code": 3}), other=quick_lane({"tok_s": 30}))
    async with running_daemon(tmp_path, lanes) as daemon:
        other = (await daemon.serving("other"))["worker"]["pid"]
        stream = begin(daemon, chat("through it all", max_tokens=300, model="other"))
        held = begin(daemon, chat(model="looping", stream=False))
        failed = await daemon.lane_is("looping", "failed", 60)
        assert "exit code 3" in failed["reason"]
        assert "5 times within ten minutes" in failed["reason"]
        assert (await held)[0] == 503
        assert [daemon.log().count(f"next start in {pause} s") >= 1 for pause in (1, 2, 4, 8)] == [True] * 4
        status, text = await stream
        answer = Answer("through it all", status=status, expected=expected_text("through it all", 300))
        read(answer, text.encode())
        assert answer.is_whole
        snapshot = await daemon.lane("other")
        assert (snapshot["worker"]["pid"], snapshot["worker"]["generation"]) == (other, 1)
        assert await daemon.status("/readyz") == 503
        assert (await daemon.post("/api/lanes/looping/stop?wait=true"))[0] == 200
        await wait_until(lambda: daemon.status("/readyz", expect=200), 5, "a stopped lane not to count")


@pytest.mark.parametrize("what", ["delete", "rename", "delete_folder"])
async def test_a_worker_whose_log_is_taken_away_is_drained_on_and_bounded(tmp_path: Path, what: str) -> None:
    lane = quick_lane({"flood": 2_000_000})
    whole = {**config(worker=lane), "log": {"max_size": "1MB", "keep": 2}}
    async with running_daemon(tmp_path, whole) as daemon:
        await daemon.serving("worker")
        folder = daemon.state_dir / "logs"
        path = folder / "worker.log"
        await wait_until(path.exists, 10, "the log")
        match what:
            case "delete":
                path.unlink()
            case "rename":
                path.rename(path.with_suffix(".moved"))
            case _:
                for file in folder.iterdir():
                    file.unlink()
                folder.rmdir()
        await wait_until(path.exists, 10, "the log to be there again")
        for number in range(3):
            status, text = await ask(daemon, chat(f"ask {number}"))
            assert (status, text.count("[DONE]")) == (200, 1)
        size = sum(file.stat().st_size for file in folder.iterdir() if not file.name.endswith(".moved"))
        assert size < 4_500_000
        assert all(file.stat().st_mode & 0o077 == 0 for file in folder.iterdir())


async def test_a_bare_environment_few_files_and_the_root_folder_are_enough(tmp_path: Path) -> None:
    """What launchd and systemd give: `env -i`, 256 open files, cwd `/`."""

    def bare() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))

    daemon = RunningDaemon(tmp_path, config(worker=quick_lane({"tok_s": 20}, max_inflight=60)))
    try:
        with daemon.log_path.open("ab") as log:
            daemon.process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-m", "supervisor", "run", "-c", str(daemon.config_path)),
                env={"TEST_DAEMON_FOLDER": str(tmp_path)}
                | ({"PYTHONPATH": p} if (p := os.environ.get("PYTHONPATH")) else {}),
                cwd="/",
                preexec_fn=bare,
                stdout=log,
                stderr=log,
            )
        await daemon.open_session()
        await daemon.listening()
        await daemon.serving("worker")
        streams = [begin(daemon, chat(f"stream {number}", max_tokens=40)) for number in range(60)]
        for status, text in await asyncio.gather(*streams):
            assert (status, text.count("[DONE]")) == (200, 1)
        assert (await daemon.post("/api/lanes/worker/recycle?wait=true"))[0] == 200
        assert "Traceback" not in daemon.log()
        assert await daemon.end() == 0
    finally:
        await daemon.kill()
        if daemon.session:
            await daemon.session.close()
        await wait_until(lambda: not daemon.workers(), 30.0, "its workers to end")


@pytest.mark.slow
async def test_more_clients_than_open_files_are_refused_or_wait_and_the_daemon_lives(tmp_path: Path) -> None:
    def bare() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))

    daemon = RunningDaemon(tmp_path, config(worker=quick_lane()))
    connections: list[Any] = []
    try:
        with daemon.log_path.open("ab") as log:
            daemon.process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-m", "supervisor", "run", "-c", str(daemon.config_path)),
                env={**os.environ, "TEST_DAEMON_FOLDER": str(tmp_path)},
                preexec_fn=bare,
                stdout=log,
                stderr=log,
            )
        await daemon.open_session()
        await daemon.listening()
        await daemon.serving("worker")
        connections += [await asyncio.open_connection("127.0.0.1", daemon.port) for _ in range(200)]
        await asyncio.sleep(3)
        for _, writer in connections:
            writer.close()
        status, text = await ask(daemon, chat("after the flood"), 30)
        assert (status, text.count("[DONE]")) == (200, 1)
        assert daemon.log_path.stat().st_size < 1_000_000
        assert (await daemon.lane("worker"))["worker"]["generation"] == 1
    finally:
        await daemon.kill()
        for _, writer in connections:
            writer.close()
        if daemon.session:
            await daemon.session.close()
        await wait_until(lambda: not daemon.workers(), 30.0, "its workers to end")
