"""A hang while two workers of a lane are there: the one that is well serves on."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

from tests.scenarios.daemon_process import RunningDaemon, running_daemon
from tests.scenarios.quick_lanes import HANG, ask, begin, chat, config, generation, quick_lane, record, tokens
from tests.waiting import wait_until


def overlapping(knobs: dict[str, Any] | None = None, stop_timeout: str = "1s") -> dict[str, Any]:
    return config(worker=quick_lane(knobs, replace="overlap", stop_timeout=stop_timeout, hang=HANG))


async def test_a_new_worker_that_freezes_in_its_proof_is_dropped_and_the_old_one_serves_on(tmp_path: Path) -> None:
    async with running_daemon(tmp_path / "daemon", overlapping({"tok_s": 20})) as daemon:
        old = (await daemon.serving("worker"))["worker"]["pid"]
        await daemon.post("/api/lanes/worker/recycle")
        await _step(daemon, "proving")
        new = (await daemon.lane("worker"))["candidate"]["pid"]
        os.kill(new, signal.SIGSTOP)
        await wait_until(lambda: _is_gone(new), 20.0)
        lane = await daemon.serving("worker", 5.0)
        assert (lane["worker"]["pid"], lane["candidate"]) == (old, None)
        assert (await ask(daemon, chat()))[0] == 200
        [failed] = await daemon.recycles("worker")
        assert failed["outcome"] == "failed"
        assert failed["requests"]["failed"] == 0


async def test_an_idle_worker_that_freezes_while_its_successor_loads_is_succeeded(tmp_path: Path) -> None:
    async with running_daemon(tmp_path / "daemon", overlapping()) as daemon:
        old = (await daemon.serving("worker"))["worker"]["pid"]
        await daemon.post("/api/lanes/worker/recycle")
        await _step(daemon, "starting")
        os.kill(old, signal.SIGSTOP)
        assert (await generation(daemon, 2))["worker"]["generation"] == 2
        assert (await ask(daemon, chat()))[0] == 200
        await wait_until(lambda: _is_gone(old), 20.0)


async def test_a_worker_that_freezes_while_its_successor_waits_to_be_proved_is_cut_and_succeeded(
    tmp_path: Path,
) -> None:
    async with running_daemon(tmp_path / "daemon", overlapping({"tok_s": 20})) as daemon:
        old = (await daemon.serving("worker"))["worker"]["pid"]
        streaming = begin(daemon, chat(max_tokens=2000))
        await tokens(daemon)
        await daemon.post("/api/lanes/worker/recycle")
        await _step(daemon, "proving")
        waiting = begin(daemon, chat())
        os.kill(old, signal.SIGSTOP)
        assert '"error"' in (await streaming)[1]
        assert (await waiting)[0] == 200
        found = await record(daemon, "hung")
        assert found["drain"]["cut"] == 1
        assert (await daemon.serving("worker"))["worker"]["generation"] == 2
        await wait_until(lambda: _is_gone(old), 20.0)


async def test_no_third_worker_starts_while_one_that_froze_is_still_there(tmp_path: Path) -> None:
    async with running_daemon(tmp_path / "daemon", overlapping({"start_delay": 4.0}, stop_timeout="6s")) as daemon:
        old = (await daemon.serving("worker"))["worker"]["pid"]
        await daemon.post("/api/lanes/worker/recycle")
        await _step(daemon, "starting")
        os.kill(old, signal.SIGSTOP)
        await generation(daemon, 2)
        assert not _is_gone(old)
        await daemon.post("/api/lanes/worker/recycle")

        async def third() -> bool:
            lane = await daemon.lane("worker")
            return lane["candidate"] is not None or lane["worker"]["generation"] > 2

        await wait_until(third, 20.0, "a third worker")
        assert _is_gone(old)


async def _step(daemon: RunningDaemon, step: str) -> None:
    async def fact() -> bool:
        return bool((await daemon.lane("worker"))["recycling"] == step)

    await wait_until(fact, 15.0, f"the recycle to be {step}; see {daemon.log_path}")


def _is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False
