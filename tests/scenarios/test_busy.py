"""Busy is not hung: probes keep out of the way of work, and their silence beside it means nothing."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import FakeWorkerFactory
from tests.fakes import read_lines, set_knobs
from tests.scenarios.daemon_process import RunningDaemon, running_daemon
from tests.scenarios.quick_lanes import BUSY_CANARY, ask, begin, chat, config, quick_lane, record, tokens
from tests.waiting import wait_until

KEEN: dict[str, Any] = {"canary": BUSY_CANARY, "hang": {"after": "2s", "pulse": "1s"}}
"""A canary and a pulse are due each second."""


PATIENT_CANARY = BUSY_CANARY | {"timeout": "5s"}


async def samples(daemon: RunningDaemon, lane: str = "worker") -> list[dict[str, Any]]:
    return await daemon.samples(lane)


@pytest.mark.slow
async def test_a_worker_busy_with_a_long_prefill_is_left_alone_and_its_canary_is_skipped_not_failed(
    tmp_path: Path,
) -> None:
    # 12 s of silence, six times the patience: what the lane has measured of its prefill says that it may take so long.
    lane = quick_lane({"one_at_a_time": True, "prefill_tok_s": 500}, **(KEEN | {"canary": PATIENT_CANARY}))
    async with running_daemon(tmp_path / "daemon", config(worker=lane)) as daemon:
        await daemon.serving("worker")
        began, wall = time.monotonic(), len(await samples(daemon))
        status, text = await ask(daemon, chat("word " * 4800))
        assert status == 200
        assert "[DONE]" in text
        assert time.monotonic() - began > 10.0
        assert await daemon.recycles("worker") == []
        beside = (await samples(daemon))[wall:]
        voids = {sample["void"] for sample in beside}
        assert voids.isdisjoint({"failed", "timed_out", "no_tokens"}), beside
        assert (await daemon.lane("worker"))["worker"]["generation"] == 1


@pytest.mark.slow
async def test_a_worker_whose_slots_are_all_taken_for_long_is_not_recycled(tmp_path: Path) -> None:
    lane = quick_lane({"slots": 2, "tok_s": 40}, max_inflight=16, max_queue=64, **KEEN)
    async with running_daemon(tmp_path / "daemon", config(worker=lane)) as daemon:
        await daemon.serving("worker")
        began = time.monotonic()
        answers: list[tuple[int, str]] = []

        async def client() -> None:
            while time.monotonic() - began < 12.0:
                answers.append(await ask(daemon, chat(max_tokens=20)))

        await asyncio.gather(*(client() for _ in range(8)))
        assert len(answers) > 20
        assert all(status == 200 and "[DONE]" in text for status, text in answers)
        assert await daemon.recycles("worker") == []


async def test_a_long_answer_in_one_piece_is_not_taken_for_silence(tmp_path: Path) -> None:
    lane = quick_lane({"tok_s": 100, "stats": "none"}, **KEEN)
    async with running_daemon(tmp_path / "daemon", config(worker=lane)) as daemon:
        await daemon.serving("worker")
        status, text = await ask(daemon, chat(max_tokens=600, stream=False))
        assert status == 200
        assert '"completion_tokens": 600' in text
        assert await daemon.recycles("worker") == []


@pytest.mark.slow
async def test_a_worker_that_still_writes_for_a_client_that_left_is_busy_and_not_hung(tmp_path: Path) -> None:
    # One request at a time, and it does not notice that its client has gone: nothing else gets a token for 8 s.
    knobs = {"one_at_a_time": True, "keep_generating": True, "tok_s": 50}
    lane = quick_lane(knobs, hang={"after": "2s", "pulse": "500ms"})
    async with running_daemon(tmp_path / "daemon", config(worker=lane)) as daemon:
        await daemon.serving("worker")
        leaving = begin(daemon, chat(max_tokens=400))
        await tokens(daemon)
        leaving.cancel()
        began = time.monotonic()
        await wait_until(lambda: time.monotonic() - began > 4.0, 10.0)  # pulses get nothing
        status, text = await ask(daemon, chat(max_tokens=4))
        assert status == 200
        assert "[DONE]" in text
        assert await daemon.recycles("worker") == []


async def test_an_attached_server_that_others_keep_busy_is_not_called_hung(
    tmp_path: Path, fake_worker: FakeWorkerFactory
) -> None:
    control = tmp_path / "knobs"
    server = await fake_worker(control=control)
    lane = {key: value for key, value in quick_lane(**KEEN).items() if key not in ("command", "replace")}
    async with running_daemon(tmp_path / "daemon", config(worker=lane | {"attach": server.url})) as daemon:
        await daemon.serving("worker")
        set_knobs(control, mode="429")
        began = time.monotonic()
        await wait_until(lambda: time.monotonic() - began > 8.0, 10.0)
        assert await daemon.recycles("worker") == []
        assert (await daemon.lane("worker"))["state"] == "serving"


async def test_a_client_voids_the_running_canary_and_waits_for_no_more_than_a_step(tmp_path: Path) -> None:
    # One request at a time, and canaries of 3 s each, back to back: only a canary that ends at once lets a client in.
    canary = {**BUSY_CANARY, "max_tokens": 60, "timeout": "20s", "every": "500ms"}
    requests = tmp_path / "requests.jsonl"
    lane = quick_lane({"one_at_a_time": True, "tok_s": 20, "requests_file": requests}, canary=canary)
    lane["warm_timeout"] = "1s"
    async with running_daemon(tmp_path / "daemon", config(worker=lane)) as daemon:
        await daemon.serving("worker")
        for _ in range(3):
            known = len(read_lines(requests))
            await more_lines(requests, known)
            began = time.monotonic()
            status, _ = await ask(daemon, chat(max_tokens=1))
            took_s = time.monotonic() - began
            assert status == 200
            assert took_s < 1.0, trace(time.monotonic() - took_s, await samples(daemon))
        assert "client_arrived" in {sample["void"] for sample in await samples(daemon)}


async def more_lines(path: Path, known: int) -> None:
    """Wait until the worker has noted more requests than these."""
    await wait_until(lambda: len(read_lines(path)) > known, 20.0, "a request to reach the worker")


async def test_pulses_and_canaries_never_overlap_on_a_lane(tmp_path: Path) -> None:
    spans = tmp_path / "answers.jsonl"
    canary = {**BUSY_CANARY, "every": "300ms", "max_tokens": 24}
    lane = quick_lane({"tok_s": 40, "digest_file": spans}, canary=canary, hang={"after": "5s", "pulse": "200ms"})
    async with running_daemon(tmp_path / "daemon", config(worker=lane)) as daemon:
        await daemon.serving("worker")
        known = len(read_lines(spans))
        await wait_until(lambda: len(read_lines(spans)) > known + 12, 30.0, "a dozen probes")
        lines = sorted(read_lines(spans), key=lambda line: line["began"])
        for earlier, later in itertools.pairwise(lines):
            assert later["began"] >= earlier["ended"] - 0.005, (earlier, later)


async def test_routine_canaries_keep_within_their_budget(tmp_path: Path) -> None:
    canary = {**BUSY_CANARY, "every": "100ms", "budget": "10%", "max_tokens": 16}
    lane = quick_lane({"tok_s": 120}, canary=canary, hang={"after": "5s", "pulse": "1h"})
    async with running_daemon(tmp_path / "daemon", config(worker=lane)) as daemon:
        await daemon.serving("worker")

        async def routine() -> list[dict[str, Any]]:
            return [sample for sample in await samples(daemon) if sample["purpose"] == "routine"]

        async def enough() -> bool:
            return len(await routine()) >= 4

        await wait_until(enough, 40.0, "four canaries")
        for earlier, later in itertools.pairwise(await routine()):
            assert later["at"] - earlier["at"] >= 9 * earlier["took_s"], trace(earlier["at"], await samples(daemon))


@pytest.mark.slow
async def test_an_unloaded_lane_is_not_probed_and_stays_unloaded(tmp_path: Path) -> None:
    requests = tmp_path / "requests.jsonl"
    lane = quick_lane({"requests_file": requests}, start="on_demand", idle_unload="1s", **KEEN)
    async with running_daemon(tmp_path / "daemon", config(worker=lane)) as daemon:
        began = time.monotonic()
        await daemon.lane_is("worker", "unloaded")
        assert (await ask(daemon, chat()))[0] == 200
        await daemon.lane_is("worker", "unloaded", 20.0)
        asked, spawns = len(read_lines(requests)), (await daemon.lane("worker"))["state"]

        async def changed() -> bool:
            lane = await daemon.lane("worker")
            return lane["state"] != "unloaded" or time.monotonic() - began > 12.0

        await wait_until(changed, 20.0)
        assert (await daemon.lane("worker"))["state"] == spawns == "unloaded"
        assert len(read_lines(requests)) == asked
        assert daemon.workers() == []


async def test_no_token_is_asked_of_a_lane_beside_a_neighbours_traffic(tmp_path: Path) -> None:
    requests = tmp_path / "requests.jsonl"
    quiet = quick_lane({"requests_file": requests}, **KEEN)
    loud = quick_lane({"tok_s": 50}, **KEEN)
    async with running_daemon(tmp_path / "daemon", config(worker=loud, quiet=quiet)) as daemon:
        await daemon.serving("worker")
        await daemon.serving("quiet")
        streaming = begin(daemon, chat(max_tokens=300))
        await tokens(daemon)
        asked = len([one for one in read_lines(requests) if one["path"].startswith("/v1/")])
        assert "[DONE]" in (await streaming)[1]
        after = len([one for one in read_lines(requests) if one["path"].startswith("/v1/")])
        assert after - asked <= 1, "one that was on its way already"
        assert await daemon.recycles("quiet") == []


async def test_a_frozen_worker_is_found_beside_a_neighbours_traffic_too(tmp_path: Path) -> None:
    quiet = quick_lane(stop_timeout="1s", **KEEN)
    loud = quick_lane({"tok_s": 50}, **KEEN)
    async with running_daemon(tmp_path / "daemon", config(worker=loud, quiet=quiet)) as daemon:
        await daemon.serving("worker")
        pid = (await daemon.serving("quiet"))["worker"]["pid"]
        streaming = begin(daemon, chat(max_tokens=600))
        await tokens(daemon)
        os.kill(pid, signal.SIGSTOP)
        found = await record(daemon, "hung", lane="quiet")
        assert found["cause"]["kind"] == "hang"
        assert "[DONE]" in (await streaming)[1], "the neighbour's stream is whole"
        assert await daemon.recycles("worker") == []


def trace(at: float, all_samples: list[dict[str, Any]]) -> str:
    """What the probes did around this moment."""
    return "\n".join(
        f"{one['at'] - at:.2f} took {one['took_s']:.2f} {one['purpose']} {one['void']} {one['detail']}"
        for one in all_samples
    )
