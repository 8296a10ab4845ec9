"""Workers that all age alike: with `recycle.learn: on` the lane learns when they are best replaced.

What takes hours in life takes seconds here: two probes a second, and each process falls to a fifth after some seconds.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.scenarios.daemon_process import running_daemon
from tests.scenarios.quick_lanes import config, quick_lane, record

FRESH = 300.0
WORKER = {
    "tok_s": FRESH,
    "noise": 0.03,
    "decay_from": FRESH,
    "decay_to": FRESH / 5,
    "decay_seconds": 4.0,
    "decay_shape": "step",
}
CANARY = {
    "every": "500ms",
    "prompt_tokens": [256],
    "max_tokens": 24,
    "idle_for": "0s",
    "budget": "100%",
    "burst_budget": "100%",
}
RECYCLE = {"learn": "on", "min_uptime": "0s", "wait_idle": "1s", "max_per_hour": 1000, "max_per_day": 1000}

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


async def test_a_lane_whose_workers_all_age_alike_replaces_them_before_they_are_slow(tmp_path: Path) -> None:
    lane: dict[str, Any] = quick_lane(WORKER, canary=CANARY, recycle=RECYCLE, baseline={"fresh_for": "3s"})
    async with running_daemon(tmp_path, config(worker=lane)) as daemon:
        told = await record(daemon, "age", within_s=150)
        slow = [one for one in await daemon.recycles("worker") if one["trigger"] == "degraded"]
        baseline = await daemon.get("/api/lanes/worker/baseline")
    assert "at which replacing it has paid best in" in told["reason"]
    assert len(slow) >= 3
    assert told["worker"]["uptime_s"] < min(one["worker"]["uptime_s"] for one in slow)
    assert baseline["ageing"]["lives"] >= 3
    assert baseline["ageing"]["best_age_s"] is not None
