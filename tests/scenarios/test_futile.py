"""A recycle that brings nothing is not repeated: the lane holds off, says so, and serves on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scenarios.daemon_process import RunningDaemon, running_daemon
from tests.scenarios.quick_lanes import ask, chat, config, quick_lane, record
from tests.waiting import wait_until

OFTEN = {
    "every": "1s",
    "prompt_tokens": [256],
    "max_tokens": 24,
    "max_time": "2s",
    "idle_for": "0s",
    "budget": "100%",
    "burst_budget": "100%",
}


async def canaries(daemon: RunningDaemon) -> int:
    return sum(sample["void"] is None for sample in await daemon.samples("worker"))


async def more_canaries(daemon: RunningDaemon, count: int) -> None:
    wanted = await canaries(daemon) + count

    async def fact() -> bool:
        return await canaries(daemon) >= wanted

    await wait_until(fact, 90, f"{count} more canaries; see {daemon.log_path}")


@pytest.mark.slow
@pytest.mark.timeout(240)
async def test_a_slow_host_costs_one_recycle_and_then_the_lane_holds_off_and_says_so(tmp_path: Path) -> None:
    speed = tmp_path / "host_speed"
    speed.write_text("1.0")
    lane = quick_lane({"tok_s": 200, "noise": 0.03, "host_speed_file": speed}, canary=OFTEN)
    async with running_daemon(tmp_path / "daemon", config(worker=lane)) as daemon:
        await daemon.serving("worker")
        await more_canaries(daemon, 12)
        speed.write_text("0.3")
        futile = await record(daemon, "degraded", 90)
        assert futile["outcome"] == "futile", futile
        assert futile["drain"]["cut"] == futile["requests"]["failed"] == 0
        assert "no recycle for slowness within 30 min" in futile["next"]
        await more_canaries(daemon, 15)
        assert [one["trigger"] for one in await daemon.recycles("worker")].count("degraded") == 1
        snapshot = await daemon.lane("worker")
        print(snapshot["state"], snapshot["reason"], snapshot["verdict"])
        assert snapshot["state"] in ("serving", "suspect")
        assert (await ask(daemon, chat()))[0] == 200
        speed.write_text("1.0")

        async def is_healthy() -> bool:
            return bool((await daemon.lane("worker"))["verdict"]["status"] == "healthy")

        await wait_until(is_healthy, 90, "the lane to be healthy again")
