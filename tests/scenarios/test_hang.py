"""A worker that gets nowhere is found within seconds and replaced; health says 200 all the while, or nothing."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tests.fakes import set_knobs
from tests.scenarios.daemon_process import RunningDaemon, running_daemon
from tests.scenarios.quick_lanes import ask, begin, chat, config, generation, quick_lane, record, tokens
from tests.waiting import wait_until

FOUND_WITHIN_S = 5.0
"""At these settings: 2 s of patience, 2 s for the estimated prefill of a request without a measured rate."""


async def assert_found(daemon: RunningDaemon, since: float) -> dict[str, Any]:
    """The record of the hang, whose drain and stop are not part of the finding."""
    found = await record(daemon, "hung")
    took_s = time.monotonic() - since - (found["downtime_s"] or 0.0)
    print(f"found within {took_s:.1f} s: {found['cause']['evidence']}")
    assert took_s <= FOUND_WITHIN_S
    assert found["cause"]["kind"] == "hang"
    assert found["outcome"] == "cured"
    return found


@pytest.mark.parametrize(
    "fault",
    [
        {"mode": "hang"},
        {"mode": "headers_then_nothing"},
        {"mode": "stall"},
        {"mode": "stall", "health": "hang"},
        {"mode": "hang", "early_headers": True},
    ],
    ids=lambda fault: " and ".join(f"{name} {value}" for name, value in fault.items()),
)
async def test_a_worker_that_hangs_on_a_request_is_replaced_and_the_next_one_answers(
    tmp_path: Path, fault: dict[str, Any]
) -> None:
    control = tmp_path / "knobs.json"
    lane = quick_lane({"control": control}, hang={"after": "2s", "pulse": "1h"})
    async with running_daemon(tmp_path / "daemon", config(worker=lane)) as daemon:
        await daemon.serving("worker")
        set_knobs(control, ill_generations=1, **fault)
        began = time.monotonic()
        hanging = begin(daemon, chat())
        await assert_found(daemon, began)
        status, text = await hanging
        # The client of a stream that had begun hears an error; the others are sent to the next worker.
        assert "[DONE]" in text or ('"error"' in text and fault["mode"] == "stall")
        await generation(daemon, 2)
        status, text = await ask(daemon, chat())
        assert status == 200
        assert "[DONE]" in text


async def test_clients_that_come_again_and_again_do_not_hide_that_none_is_answered(tmp_path: Path) -> None:
    control = tmp_path / "knobs.json"
    lane = quick_lane({"control": control}, hang={"after": "2s", "pulse": "1h"}, max_inflight=64)
    async with running_daemon(tmp_path / "daemon", config(worker=lane)) as daemon:
        await daemon.serving("worker")
        set_knobs(control, mode="headers_then_nothing", ill_generations=1)
        began = time.monotonic()
        waiting = {begin(daemon, chat())}
        while time.monotonic() - began < 20 and not await daemon.recycles("worker"):
            waiting.add(begin(daemon, chat()))
            await asyncio.wait(waiting, timeout=0.4)
        await assert_found(daemon, began)
        assert {(await one)[0] for one in waiting} == {200}


async def test_clients_that_give_up_and_come_again_do_not_hide_it_either(tmp_path: Path) -> None:
    control = tmp_path / "knobs.json"
    lane = quick_lane({"control": control}, hang={"after": "1h", "pulse": "1s"})
    async with running_daemon(tmp_path / "daemon", config(worker=lane)) as daemon:
        await daemon.serving("worker")
        set_knobs(control, mode="headers_then_nothing", ill_generations=1)
        began = time.monotonic()
        while time.monotonic() - began < 20 and (await daemon.lane("worker"))["state"] == "serving":
            with contextlib.suppress(TimeoutError):
                await ask(daemon, chat(), within_s=0.5)
            await idle(daemon, 1.2)
        await record(daemon, "hung")


async def idle(daemon: RunningDaemon, seconds: float) -> None:
    """Let the lane be idle for so long, if it goes on serving."""
    due = time.monotonic() + seconds

    async def fact() -> bool:
        return time.monotonic() >= due or (await daemon.lane("worker"))["state"] != "serving"

    await wait_until(fact)


@pytest.mark.parametrize("load", ["idle", "busy"])
async def test_a_stopped_process_with_an_open_port_is_hung(tmp_path: Path, load: str) -> None:
    lane = quick_lane(stop_timeout="1s")
    async with running_daemon(tmp_path / "daemon", config(worker=lane)) as daemon:
        pid = (await daemon.serving("worker"))["worker"]["pid"]
        streaming = begin(daemon, chat(max_tokens=10_000)) if load == "busy" else None
        if streaming:
            await tokens(daemon)
        os.kill(pid, signal.SIGSTOP)
        found = await assert_found(daemon, time.monotonic())
        assert found["stop"]["killed"], "a stopped process hears no SIGTERM"
        await generation(daemon, 2)
        if streaming:
            assert '"error"' in (await streaming)[1]


async def test_a_worker_that_answers_health_and_fails_every_completion_is_replaced_and_killed_only_after_patience(
    tmp_path: Path,
) -> None:
    control = tmp_path / "knobs.json"
    lane = quick_lane({"control": control, "sigterm": "ignored", "ill_generations": 1}, stop_timeout="2s")
    async with running_daemon(tmp_path / "daemon", config(worker=lane)) as daemon:
        await daemon.serving("worker")
        set_knobs(control, mode="500")
        found = await assert_found(daemon, time.monotonic())
        assert found["stop"]["killed"]
        assert found["stop"]["took_s"] >= 2.0, "patience first"
