"""Starts that take long: patience for those that work, and no queue behind those that do not."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from tests.scenarios.daemon_process import running_daemon
from tests.scenarios.quick_lanes import ask, chat, config, quick_lane
from tests.waiting import wait_until


async def test_a_worker_that_is_stopped_while_it_loads_keeps_no_other_lane_from_starting(tmp_path: Path) -> None:
    """And it has its start_timeout all the same: when it goes on, it serves."""
    worker = quick_lane({"start_delay": 2}, start_timeout="10m")
    lanes = config(worker=worker, other=quick_lane())
    async with running_daemon(tmp_path, lanes) as daemon:

        async def pid() -> int | None:
            now = (await daemon.lane("worker"))["worker"]
            return now["pid"] if now else None

        loading = int(await wait_until(pid, 10.0))
        os.kill(loading, signal.SIGSTOP)
        assert (await daemon.lane("other"))["worker"] is None, "it waits for its turn"
        await daemon.serving("other", 15.0)
        assert (await ask(daemon, chat(model="other")))[0] == 200
        waiting = await daemon.lane("worker")
        assert waiting["state"] == "starting"
        assert "other lanes may start" in waiting["reason"]
        os.kill(loading, signal.SIGCONT)
        served = await daemon.serving("worker", 15.0)
        assert served["worker"]["pid"] == loading
