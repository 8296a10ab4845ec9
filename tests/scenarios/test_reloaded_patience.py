"""A reload reaches also those who watch a worker that it leaves alone."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from tests.scenarios.daemon_process import running_daemon
from tests.scenarios.quick_lanes import HANG, config, quick_lane, record


async def test_a_shorter_patience_finds_a_hung_worker_that_was_started_with_a_longer_one(tmp_path: Path) -> None:
    patient = quick_lane(hang={"after": "1h", "pulse": "1h"})
    async with running_daemon(tmp_path, config(worker=patient)) as daemon:
        before = (await daemon.serving("worker"))["worker"]
        daemon.write_config(config(worker=quick_lane(hang=HANG)))
        status, answer = await daemon.post("/api/reload")
        assert (status, answer["lanes"]) == (200, {"worker": "updated"})
        os.kill(before["pid"], signal.SIGSTOP)
        hung = await record(daemon, "hung", 30)
        assert hung["worker"]["pid"] == before["pid"]
