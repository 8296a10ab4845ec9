"""A worker's own words as the shell hears them: asked for in bounded time, and never needed."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from supervisor.presets import PRESETS
from supervisor.shell.front.upstream import Upstream
from supervisor.shell.lane.self_report import SelfReport
from supervisor.shell.worker.output import Output
from tests.conftest import FakeWorkerFactory, find_free_port
from tests.waiting import wait_until

LINE = b"MTP[1] finish=length tokens=30 cycles=10 tok/cycle=3.00 timing[backbone=400.0ms mtp=100.0ms]\n"


def now() -> float:
    return asyncio.get_running_loop().time()


async def test_a_server_that_is_not_there_says_nothing_and_is_asked_again() -> None:
    upstream = Upstream(1, f"http://127.0.0.1:{find_free_port()}")
    report = SelfReport(upstream, None, now)
    assert await report.ask() is None
    async with report.around_canary(256) as told:
        pass
    assert told.tokens_per_step is None
    assert report.own_words is None
    await upstream.close()


async def test_a_worker_without_stats_is_asked_once(fake_worker: FakeWorkerFactory, tmp_path: Path) -> None:
    asked = tmp_path / "requests"
    worker = await fake_worker(stats="none", requests_file=asked)
    upstream = Upstream(1, worker.url)
    report = SelfReport(upstream, None, now)
    assert [await report.ask() for _ in range(3)] == [None] * 3
    assert asked.read_text().count("/stats") == 1
    await upstream.close()


async def test_a_restart_is_seen_by_uptime_that_falls(fake_worker: FakeWorkerFactory) -> None:
    port = find_free_port()
    worker, upstream = await fake_worker(port=port), Upstream(1, f"http://127.0.0.1:{port}")
    report = SelfReport(upstream, None, now)
    first = await report.ask()
    assert first is not None
    uptime_s = first.uptime_s or 0.0

    async def is_older() -> bool:
        reading = await report.ask()
        return reading is not None and (reading.uptime_s or 0.0) > uptime_s + 1.0

    await wait_until(is_older, 10.0, "a second of uptime")
    assert not report.is_restarted
    await worker.end()
    await fake_worker(port=port)
    assert await report.ask() is not None
    assert report.is_restarted
    await upstream.close()


@pytest.fixture
async def output(tmp_path: Path) -> Output:
    return Output(tmp_path / "log", 1_000_000, 1)


async def test_a_line_that_comes_while_a_canary_is_out_is_about_the_canary(output: Output) -> None:
    upstream = Upstream(1, f"http://127.0.0.1:{find_free_port()}")
    report = SelfReport(upstream, PRESETS["omlx"], now)
    report.listen(output)
    await asyncio.sleep(0)
    for _ in range(7):
        async with report.around_canary(256) as told:
            os.write(output.write_end(), LINE[:20])
            os.write(output.write_end(), LINE[20:])
        assert told.tokens_per_step == 3.0
    words = report.own_words
    assert words is not None
    assert words.step_ms == (50.0, 50.0)
    assert (await report.counters(0.1))[0] == 7.0
    await report.close()
    output.close()
    await upstream.close()


async def test_a_flood_of_lines_is_skipped_through(output: Output) -> None:
    upstream = Upstream(1, f"http://127.0.0.1:{find_free_port()}")
    report = SelfReport(upstream, PRESETS["omlx"], now)
    report.listen(output)
    await asyncio.sleep(0)
    junk = b"x" * 60_000 + b"\n"

    def write_all() -> None:
        for _ in range(100):
            os.write(output.write_end(), junk)
        os.write(output.write_end(), b"\n" + LINE)

    await asyncio.wait_for(asyncio.to_thread(write_all), 10.0)

    async def has_heard() -> bool:
        return (await report.counters(0.1))[0] >= 1.0

    await wait_until(has_heard, 20.0, "the line behind the flood")
    await report.close()
    output.close()
    await upstream.close()
