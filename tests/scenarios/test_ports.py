"""Ports that are taken: by a stranger, by our own past, at any moment."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import FakeWorkerFactory
from tests.fakes import fake_command
from tests.scenarios.daemon_process import RunningDaemon, running_daemon
from tests.scenarios.quick_lanes import ask, chat, config, generation, quick_lane
from tests.waiting import wait_until


@contextmanager
def stranger_on(port: int, host: str = "127.0.0.1") -> Iterator[None]:
    """This very process takes the port."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen()
        yield


def fixed(port: int, **keys: Any) -> dict[str, Any]:
    """A lane whose worker takes no port from us."""
    command = [part.replace("{port}", str(port)) for part in fake_command()]
    return quick_lane(command=command, port=port, memory={"timeout": "1s"}, **keys)


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
async def test_a_daemon_whose_port_a_stranger_has_exits_69_at_once_and_names_it(tmp_path: Path, host: str) -> None:
    daemon = RunningDaemon(tmp_path, config(worker=quick_lane()), env={"TEST_DAEMON_FOLDER": str(tmp_path)})
    with stranger_on(daemon.port, host):
        await daemon.start()
        assert daemon.process
        try:
            assert await asyncio.wait_for(daemon.process.wait(), 30.0) == 69
        finally:
            await daemon.kill()
            if daemon.session:
                await daemon.session.close()
    assert f"pid {os.getpid()}" in daemon.log()
    assert Path(sys.executable).name[:6] in daemon.log()
    assert daemon.log().count("port_taken") == 1
    assert daemon.workers() == []


async def test_a_second_daemon_on_the_same_folder_is_refused_with_the_firsts_pid_and_harms_nothing(
    tmp_path: Path,
) -> None:
    whole = config(worker=quick_lane())
    async with running_daemon(tmp_path / "daemon", whole) as daemon:
        pid = (await daemon.serving("worker"))["worker"]["pid"]
        second = RunningDaemon(tmp_path / "daemon", whole)
        second.log_path = tmp_path / "second.log"
        await second.start()
        assert second.process
        try:
            assert await asyncio.wait_for(second.process.wait(), 30.0) != 0
        finally:
            await second.kill()
            if second.session:
                await second.session.close()
        assert f"pid {daemon.pid}" in second.log()
        assert (await daemon.lane("worker"))["worker"]["pid"] == pid


async def test_a_lane_whose_fixed_port_a_stranger_has_is_blocked_names_it_and_goes_on_when_it_leaves(
    tmp_path: Path, free_port: int
) -> None:
    async with contextlib.AsyncExitStack() as closing:
        with stranger_on(free_port):
            daemon = await closing.enter_async_context(
                running_daemon(tmp_path / "daemon", config(worker=fixed(free_port)))
            )
            blocked = await daemon.lane_is("worker", "blocked", 10.0)
            assert f"pid {os.getpid()}" in blocked["reason"]
            assert daemon.workers() == []
        await daemon.serving("worker", 10.0)


async def test_a_stranger_that_takes_the_fixed_port_between_two_workers_blocks_the_lane_until_it_leaves(
    tmp_path: Path, free_port: int
) -> None:
    lane = fixed(free_port)
    async with running_daemon(tmp_path / "daemon", config(worker=lane)) as daemon:
        pid = (await daemon.serving("worker"))["worker"]["pid"]
        os.kill(pid, signal.SIGKILL)
        await daemon.lane_is("worker", "backing_off", 10.0)
        with stranger_on(free_port):
            blocked = await daemon.lane_is("worker", "blocked", 15.0)
            assert f"pid {os.getpid()}" in blocked["reason"]
            assert daemon.workers() == []
        await generation(daemon, 2)
        assert (await ask(daemon, chat()))[0] == 200


async def test_a_healthy_server_of_a_stranger_on_the_fixed_port_never_gets_a_request(
    tmp_path: Path, fake_worker: FakeWorkerFactory
) -> None:
    requests = tmp_path / "requests.jsonl"
    stranger = await fake_worker(requests_file=requests)
    async with running_daemon(tmp_path / "daemon", config(worker=fixed(stranger.port))) as daemon:
        blocked = await daemon.lane_is("worker", "blocked", 10.0)
        assert f"pid {stranger.pid}" in blocked["reason"]
        assert not requests.exists() or "/v1/" not in requests.read_text()
        assert stranger.process.returncode is None


async def test_a_stranger_that_is_quicker_to_the_port_we_gave_is_not_taken_for_the_worker(
    tmp_path: Path, fake_worker: FakeWorkerFactory, free_port: int
) -> None:
    # Between the choice of the port and the worker's bind a stranger takes it: here the worker itself lets it in.
    start = tmp_path / "late.py"
    start.write_text(LATE)
    requests = tmp_path / "requests.jsonl"
    command = [sys.executable, str(start), str(tmp_path / "port"), *fake_command()]
    async with running_daemon(tmp_path / "daemon", config(worker=quick_lane(command=command))) as daemon:
        told = tmp_path / "port"
        await wait_until(told.exists, 20.0, "the worker to be told its port")
        port = int(told.read_text())
        stranger = await fake_worker(port=port, requests_file=requests)
        (tmp_path / "port.go").touch()
        lane = await generation(daemon, 2, 30.0)
        assert lane["worker"]["port"] != port
        assert (await ask(daemon, chat()))[0] == 200
        asked = requests.read_text() if requests.exists() else ""
        assert "/v1/" not in asked
        assert stranger.process.returncode is None


LATE = """
import os, pathlib, sys, time
told, command = pathlib.Path(sys.argv[1]), sys.argv[2:]
if os.environ["FRESHLANE_GENERATION"] == "1":
    told.with_suffix(".new").write_text(command[command.index("--port") + 1])
    told.with_suffix(".new").rename(told)
    while not told.with_name("port.go").exists():
        time.sleep(0.01)
os.execv(command[0], command)
"""
