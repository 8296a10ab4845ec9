"""A worker that was told to stop is left in peace: nobody asks it for a token, or calls it hung."""

from __future__ import annotations

from pathlib import Path

from tests.scenarios.daemon_process import running_daemon
from tests.scenarios.quick_lanes import config, quick_lane


async def test_no_pulse_is_sent_to_a_worker_that_was_told_to_stop(tmp_path: Path) -> None:
    slow = quick_lane({"sigterm": "slow", "term_seconds": 3}, hang={"after": "1s", "pulse": "300ms"})
    async with running_daemon(tmp_path, config(worker=slow)) as daemon:
        await daemon.serving("worker")
        assert (await daemon.post("/api/lanes/worker/stop?wait=true"))[0] == 200
        assert "pulse_missed" not in daemon.log()
