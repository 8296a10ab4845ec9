"""Lanes whose clients leave no quiet moment: what their streams tell, and the short hold of all lanes for a canary."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.scenarios.daemon_process import RunningDaemon, running_daemon
from tests.scenarios.quick_lanes import ask, chat, config, quick_lane, record
from tests.waiting import wait_until

CANARY = {
    "every": "10s",
    "prompt_tokens": [256],
    "max_tokens": 24,
    "idle_for": "0s",
    "budget": "100%",
    "burst_budget": "100%",
}

CANARY_S = 4.0
ASK_EVERY_S = 1.5

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


@asynccontextmanager
async def clients(daemon: RunningDaemon, model: str, *, count: int = 2, **more: Any) -> AsyncIterator[list[int]]:
    """So many clients that ask again and again; the statuses of their answers."""
    statuses: list[int] = []

    async def one() -> None:
        while True:
            status, text = await ask(daemon, {**chat(model=model, max_tokens=40), **more})
            statuses.append(status if "[DONE]" in text else 0)

    tasks = [asyncio.ensure_future(one()) for _ in range(count)]
    try:
        yield statuses
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def test_streams_of_a_lane_that_is_never_idle_bring_the_canary_that_finds_it_aged(tmp_path: Path) -> None:
    aged = {"decay_from": 200.0, "decay_to": 50.0, "decay_requests": 60, "decay_shape": "step"}
    worker = quick_lane(aged, canary=CANARY, baseline={"fresh_requests": 30})
    usage = {"stream_options": {"include_usage": True}}
    async with running_daemon(tmp_path / "daemon", config(worker=worker)) as daemon:
        await daemon.serving("worker")
        async with clients(daemon, "worker", **usage) as statuses:
            recycled = await record(daemon, "degraded", within_s=90)
        assert recycled["outcome"] == "cured"
        assert recycled["drain"]["cut"] == 0
        assert set(statuses) == {200}
        assert "clients' streams run at" in daemon.log()


async def test_the_gates_of_all_lanes_hold_for_the_canary_of_one(tmp_path: Path) -> None:
    worker = quick_lane(canary={**CANARY, "every": "1s", "force_after": "2s", "hold": "5s"})
    other = quick_lane({"tok_s": 200.0})
    async with running_daemon(tmp_path / "daemon", config(worker=worker, other=other)) as daemon:
        await daemon.serving("worker")
        await daemon.serving("other")

        async def clean() -> int:
            return sum(sample["void"] is None for sample in await daemon.samples("worker"))

        async with clients(daemon, "other") as statuses:
            before = await clean()

            async def is_measured() -> bool:
                return await clean() >= before + 2

            await wait_until(is_measured, 60, f"a canary beside a busy lane; see {daemon.log_path}")
        assert set(statuses) == {200}
        assert (await daemon.lane("other"))["totals"]["failed"] == 0


async def test_a_client_does_not_wait_for_a_routine_canary_of_another_lane(tmp_path: Path) -> None:
    slow = quick_lane({"tok_s": 12.0}, canary={**CANARY, "max_tokens": 48, "max_time": "20s", "timeout": "20s"})
    slow["canary"]["every"] = "1s"
    async with running_daemon(tmp_path / "daemon", config(worker=slow, other=quick_lane())) as daemon:
        await daemon.serving("worker")
        await daemon.serving("other")

        async def is_disturbed() -> bool:
            began = time.monotonic()
            status, _ = await ask(daemon, chat(model="other", max_tokens=1))
            waited.append(time.monotonic() - began)
            assert status == 200
            await asyncio.sleep(ASK_EVERY_S)
            return any(sample["void"] == "device_busy" for sample in await daemon.samples("worker"))

        waited: list[float] = []
        await wait_until(is_disturbed, 30, f"a canary that gives way; see {daemon.log_path}")
        assert max(waited) < CANARY_S / 2
        assert (await daemon.lane("other"))["totals"]["held"] == 0
