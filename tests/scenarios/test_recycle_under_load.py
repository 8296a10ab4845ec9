"""The main promise: a worker that ages under load is replaced, and no client notices more than a longer wait."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.fakes import fake_command
from tests.scenarios.daemon_process import RunningDaemon, running_daemon
from tests.scenarios.streaming_clients import Clients, digests
from tests.waiting import wait_until

CLIENTS = 8
REQUESTS = 1000
NOISE = {"noise": 0.14, "outliers": 0.125}
AGEING = {"decay_from": 66.5, "decay_to": 20.5, "decay_requests": 85}

CANARY = {
    "every": "4s",
    "prompt_tokens": [256],
    "max_tokens": 12,
    "max_time": "2s",
    "idle_for": "0s",
    "budget": "100%",
    "burst_budget": "100%",
    "hold": "20s",
    "force_after": "4s",
}
"""What takes hours in life takes minutes here: the same steps, closer together."""


def lane(digest_file: Path, replace: str, **knobs: Any) -> dict[str, Any]:
    return {
        "command": fake_command(digest_file=digest_file, **NOISE, **knobs),
        "max_inflight": 64,
        "replace": replace,
        "canary": CANARY,
        "recycle": {
            "min_uptime": "0s",
            "wait_idle": "0s",
            "max_hold": "60s",
            "max_per_hour": 1000,
            "max_per_day": 1000,
        },
    }


async def load(daemon: RunningDaemon, clients: Clients, count: int, requests: int, within_s: float) -> None:
    await daemon.serving("worker")
    running = asyncio.ensure_future(clients.run(count))
    try:
        await wait_until(lambda: len(clients.answers) >= requests or running.done(), within_s, f"{requests} answers")
    finally:
        clients.stop()
        await asyncio.wait_for(running, 120)


def assert_nobody_noticed(clients: Clients, digest_file: Path) -> None:
    broken = [answer for answer in clients.answers if not answer.is_whole]
    assert not broken, f"{len(broken)} of {len(clients.answers)}: {broken[:3]}"
    sent = digests(digest_file)
    assert {answer.request_id: answer.sha256 for answer in clients.answers} == {
        answer.request_id: sent[answer.request_id] for answer in clients.answers
    }


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("replace", ["in_place", "overlap"])
async def test_an_ageing_worker_is_cured_under_load_and_no_request_is_lost(tmp_path: Path, replace: str) -> None:
    digest_file = tmp_path / "digests.jsonl"
    config = {"lanes": {"worker": lane(digest_file, replace, **AGEING)}}
    async with running_daemon(tmp_path / "daemon", config) as daemon:
        clients = Clients(daemon.url, "worker")
        await load(daemon, clients, CLIENTS, REQUESTS, 500)
        records = [record for record in await daemon.recycles("worker") if record["trigger"] == "degraded"]
        longest_s = max(answer.took_s for answer in clients.answers)
        print(f"{len(clients.answers)} answers, longest {longest_s:.1f} s")
        for record in records:
            print({key: record[key] for key in ("outcome", "downtime_s", "drain", "requests", "before", "after")})
        assert_nobody_noticed(clients, digest_file)
        done = [record for record in records if record["outcome"] not in ("aborted",)]
        assert {record["outcome"] for record in done} <= {"cured", "partial"}
        assert any(record["outcome"] == "cured" for record in done)
        assert all(record["requests"]["failed"] == record["drain"]["cut"] == 0 for record in records)
        if replace == "overlap":
            assert all(record["downtime_s"] == 0 for record in done)
            return
        for record in done:
            assert record["drain"]["inflight"] >= 4
            assert record["drain"]["held"] >= 8
            assert 0 < record["downtime_s"] < longest_s


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_the_same_noise_without_ageing_recycles_nothing(tmp_path: Path) -> None:
    digest_file = tmp_path / "digests.jsonl"
    config = {"lanes": {"worker": lane(digest_file, "in_place", tok_s=60)}}
    async with running_daemon(tmp_path / "daemon", config) as daemon:
        clients = Clients(daemon.url, "worker", lengths=(8, 12, 24))
        await load(daemon, clients, 48, 10 * REQUESTS, 800)
        samples = await daemon.samples("worker")
        print(f"{len(clients.answers)} answers, {sum(sample['void'] is None for sample in samples)} clean canaries")
        assert_nobody_noticed(clients, digest_file)
        assert await daemon.recycles("worker") == []
