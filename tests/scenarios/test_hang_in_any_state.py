"""A hang is found in every state that has a worker, and ends what was wanted in the way that was wanted."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.fakes import set_knobs
from tests.scenarios.daemon_process import RunningDaemon, running_daemon
from tests.scenarios.quick_lanes import ask, begin, chat, config, generation, quick_lane, record, tokens
from tests.waiting import wait_until


async def stalled_stream(daemon: RunningDaemon, control: Path) -> Any:
    """A client whose stream falls silent after its first tokens."""
    set_knobs(control, mode="stall", ill_generations=1)
    streaming = begin(daemon, chat())
    await tokens(daemon)
    return streaming


async def test_a_worker_that_hangs_while_draining_for_a_recycle_is_cut_and_replaced(tmp_path: Path) -> None:
    control = tmp_path / "knobs"
    async with running_daemon(tmp_path / "daemon", config(worker=quick_lane({"control": control}))) as daemon:
        await daemon.serving("worker")
        streaming = await stalled_stream(daemon, control)
        await daemon.post("/api/lanes/worker/recycle")
        await daemon.lane_is("worker", "draining")
        found = await record(daemon, "hung")
        assert found["drain"]["cut"] == 1
        assert '"error"' in (await streaming)[1]
        await generation(daemon, 2)


async def test_a_worker_that_hangs_while_a_person_stops_the_lane_is_ended_and_the_lane_stays_stopped(
    tmp_path: Path,
) -> None:
    control = tmp_path / "knobs"
    async with running_daemon(tmp_path / "daemon", config(worker=quick_lane({"control": control}))) as daemon:
        await daemon.serving("worker")
        streaming = await stalled_stream(daemon, control)
        await daemon.post("/api/lanes/worker/stop")
        await daemon.lane_is("worker", "stopped", 15.0)
        assert '"error"' in (await streaming)[1]
        assert daemon.workers() == []


async def test_a_drained_worker_that_freezes_is_replaced_and_the_lane_stays_drained(tmp_path: Path) -> None:
    async with running_daemon(tmp_path / "daemon", config(worker=quick_lane(stop_timeout="1s"))) as daemon:
        pid = (await daemon.serving("worker"))["worker"]["pid"]
        await daemon.post("/api/lanes/worker/drain")
        await daemon.lane_is("worker", "drained")
        os.kill(pid, signal.SIGSTOP)
        await record(daemon, "hung")
        drained = await daemon.lane_is("worker", "drained", 20.0)
        assert drained["worker"]["generation"] == 2
        assert (await ask(daemon, chat()))[0] == 503


@pytest.mark.parametrize("stopped", ["warming", "loading"])
async def test_a_worker_that_freezes_on_its_way_up_is_tried_anew(tmp_path: Path, stopped: str) -> None:
    knobs: dict[str, Any] = {"tok_s": 10} if stopped == "warming" else {"load_delay": 3}
    lane = quick_lane(knobs, stop_timeout="1s", start_timeout="8s")
    async with running_daemon(tmp_path / "daemon", config(worker=lane)) as daemon:

        async def pid_in_state() -> int:
            lane = await daemon.lane("worker")
            is_there = lane["state"] == ("warming" if stopped == "warming" else "starting") and lane["worker"]
            return int(lane["worker"]["pid"] or 0) if is_there else 0

        os.kill(await wait_until(pid_in_state, 20.0), signal.SIGSTOP)
        await generation(daemon, 2, 60.0)
