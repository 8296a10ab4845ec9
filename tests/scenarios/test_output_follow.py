"""Following what a worker prints, also where there is nothing more to come."""

from __future__ import annotations

from pathlib import Path

import aiohttp

from tests.fakes import fake_command
from tests.scenarios.daemon_process import running_daemon
from tests.scenarios.quick_lanes import config, quick_lane
from tests.waiting import wait_until


async def test_a_worker_that_has_closed_its_output_may_be_followed_and_the_daemon_goes_on(tmp_path: Path) -> None:
    silent = ["sh", "-c", 'exec "$@" >/dev/null 2>&1', "sh", *fake_command()]
    async with running_daemon(tmp_path, config(worker=quick_lane(command=silent))) as daemon:
        await daemon.serving("worker")
        assert daemon.session
        url = f"{daemon.url}/api/lanes/worker/logs?follow=true"
        timeout = aiohttp.ClientTimeout(total=5)
        async with daemon.session.get(url, headers=daemon.headers(), timeout=timeout) as answer:
            assert answer.status == 200
            assert (await daemon.lane("worker"))["state"] == "serving"


async def test_the_last_words_of_a_worker_that_dies_by_itself_are_in_the_log(tmp_path: Path) -> None:
    dying = ["sh", "-c", "echo no kernel image for this device, port {port} >&2; exit 3"]
    async with running_daemon(tmp_path, config(worker=quick_lane(command=dying))) as daemon:
        await wait_until(lambda: "worker_died" in daemon.log(), 10)
        assert "no kernel image for this device" in daemon.log()
