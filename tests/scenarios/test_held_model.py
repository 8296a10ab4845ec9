"""A model that a server of somebody else's holds already is not loaded beside it, unless the lane says that two fit."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from supervisor.shell.lane.attendant import HOLDING_TIMEOUT_S
from supervisor.shell.machine.holdings import USUAL_PORTS, holding_of
from tests.conftest import RunningWorker, port_is_open, start_worker
from tests.fakes import fake_command
from tests.scenarios.daemon_process import running_daemon
from tests.scenarios.quick_lanes import config, quick_lane
from tests.waiting import wait_until

MODEL = "org/model-of-this-test"
pytestmark = pytest.mark.xdist_group("usual_ports")


@pytest.fixture
async def holder() -> AsyncIterator[RunningWorker]:
    """A server on a usual port that holds the model."""
    port = next(port for port in USUAL_PORTS if not port_is_open(port))
    worker = await start_worker(fake_command(model=MODEL), port)
    yield worker
    await worker.end()


async def test_a_lane_whose_model_is_held_says_by_whom_and_starts_once_that_is_gone(
    tmp_path: Path, holder: RunningWorker
) -> None:
    lane = quick_lane(model=MODEL, memory={"timeout": "1s"})
    async with running_daemon(tmp_path, config(worker=lane)) as daemon:
        await daemon.lane_is("worker", "blocked", 20.0)

        async def told() -> str | None:
            reason = str((await daemon.lane("worker"))["reason"])
            return reason if f"on port {holder.port} already holds {MODEL}" in reason else None

        reason = await wait_until(told, 10.0, "the reason")
        assert f"kill -INT {holder.pid}" in reason
        await holder.end()
        await daemon.serving("worker", 20.0)


async def test_a_lane_that_overlaps_says_itself_that_two_fit(tmp_path: Path, holder: RunningWorker) -> None:
    lane = quick_lane(model=MODEL, replace="overlap")
    async with running_daemon(tmp_path, config(worker=lane)) as daemon:
        await daemon.serving("worker", 20.0)


async def test_workers_of_other_lanes_of_other_daemons_and_of_a_killed_one_are_in_nobodys_way(tmp_path: Path) -> None:
    port = next(port for port in USUAL_PORTS if not port_is_open(port))
    fixed = {**quick_lane(model=MODEL), "command": fake_command(port=port, model=MODEL), "port": port}
    other = quick_lane({"model": MODEL}, model=MODEL)
    first = config(worker=fixed, beside=other)
    async with (
        running_daemon(tmp_path / "one", first) as one,
        running_daemon(tmp_path / "two", config(worker=other)) as two,
    ):
        for daemon, lane in ((one, "worker"), (one, "beside"), (two, "worker")):
            await daemon.serving(lane, 20.0)
        await one.kill()
        await one.start()
        for lane in ("worker", "beside"):
            await one.serving(lane, 20.0)


async def test_a_model_whose_name_only_begins_alike_is_another_one_and_the_look_is_short(holder: RunningWorker) -> None:
    assert holding_of(MODEL) is not None
    begun = time.monotonic()
    assert holding_of(MODEL.removesuffix("-test")) is None
    assert holding_of(f"{MODEL}/4bit") is None
    assert time.monotonic() - begun < 2 * HOLDING_TIMEOUT_S, "beyond that nobody is said to hold it"


async def test_a_folder_is_the_same_under_any_name_and_workers_of_a_daemon_hold_nothing(tmp_path: Path) -> None:
    folder, link = tmp_path / "model", tmp_path / "link"
    folder.mkdir()
    link.symlink_to(folder)
    port = next(port for port in USUAL_PORTS if not port_is_open(port))
    theirs = await start_worker(fake_command(model=folder), port)
    held = holding_of(str(link), [port])
    await theirs.end()
    assert held is not None
    assert (held.pid, held.port) == (theirs.pid, port)
    ours = await start_worker(fake_command(model=folder), port, env={**os.environ, "FRESHLANE_GENERATION": "1"})
    assert holding_of(str(folder), [port]) is None
    await ours.end()
