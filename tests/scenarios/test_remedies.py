"""Mild remedies on the real daemon: what a worker can undo by itself is tried before it is replaced."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.scenarios.daemon_process import RunningDaemon, running_daemon
from tests.scenarios.quick_lanes import config, quick_lane, record
from tests.waiting import wait_until

FRESH = 300.0
SLOW = 90.0
CANARY = {
    "every": "400ms",
    "prompt_tokens": [256],
    "max_tokens": 16,
    "idle_for": "0s",
    "budget": "100%",
    "burst_budget": "100%",
}
AGED = {"decay_from": FRESH, "decay_to": SLOW, "decay_seconds": 6, "decay_shape": "step", "noise": 0.03}

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


def lane(**worker: Any) -> dict[str, Any]:
    """Its worker falls to a third, at once, some seconds after its start."""
    return quick_lane({**AGED, **worker}, canary=CANARY, baseline={"fresh_for": "4s"})


def brief(told: dict[str, Any]) -> list[tuple[str, str]]:
    return [(each["name"], each["outcome"]) for each in told["remedies"]]


async def state_is(daemon: RunningDaemon, state: str, reason: str) -> None:
    async def fact() -> bool:
        now = await daemon.lane("worker")
        return bool(now["state"] == state and reason in now["reason"])

    await wait_until(fact, 30, f"{state} with {reason!r}; see {daemon.log_path}")


async def counted(daemon: RunningDaemon) -> dict[str, Any]:
    """The lane once its record is counted."""

    async def fact() -> dict[str, Any] | None:
        now = await daemon.lane("worker")
        return now if now["totals"]["recycles"] else None

    return dict(await wait_until(fact, 10, "the record to be counted"))


async def test_what_clear_cache_cures_is_cured_without_a_restart(tmp_path: Path) -> None:
    async with running_daemon(
        tmp_path / "daemon", config(worker=lane(cured_by="clear_cache", stays_cured=True))
    ) as daemon:
        before = await daemon.serving("worker")
        told = await record(daemon, "degraded", within_s=60)
        await state_is(daemon, "serving", "clear_cache cured it")
        after = await counted(daemon)
    assert (told["outcome"], told["cause"]["kind"], brief(told)) == ("cured", "worker_aged", [("clear_cache", "cured")])
    [tried] = told["remedies"]
    assert tried["before_tok_s"] == pytest.approx(SLOW, rel=0.2)
    assert tried["ratio"] >= 0.95
    assert (told["downtime_s"], told["stop"]["signal"], told["requests"]["failed"]) == (0, None, 0)
    assert after["worker"]["pid"] == before["worker"]["pid"]
    assert after["totals"]["recycles_by_trigger"] == {"degraded": {"cured": 1}}


async def test_what_nothing_cures_is_recycled_and_the_record_says_what_was_tried(tmp_path: Path) -> None:
    async with running_daemon(tmp_path / "daemon", config(worker=lane())) as daemon:
        before = await daemon.serving("worker")
        told = await record(daemon, "degraded", within_s=60)
        after = await daemon.lane("worker")
    assert (told["outcome"], brief(told)) == ("cured", [("clear_cache", "futile"), ("drop_prefix_cache", "futile")])
    assert told["before"]["ratio"] == pytest.approx(SLOW / FRESH, rel=0.2)
    assert told["after"]["ratio"] == pytest.approx(1.0, rel=0.2)
    assert after["worker"]["generation"] > before["worker"]["generation"]


async def test_a_worker_without_remedies_is_recycled_at_once(tmp_path: Path) -> None:
    async with running_daemon(tmp_path / "daemon", config(worker=lane(remedies="none"))) as daemon:
        told = await record(daemon, "degraded", within_s=60)
    assert (told["outcome"], told["remedies"]) == ("cured", [])


async def test_where_a_person_decides_the_lane_says_what_it_would_do_and_what_waiting_costs(tmp_path: Path) -> None:
    advised = lane(cured_by="clear_cache")
    advised["recycle"] = {**advised["recycle"], "mode": "advise"}
    async with running_daemon(tmp_path / "daemon", config(worker=advised)) as daemon:
        await daemon.serving("worker")
        await state_is(daemon, "suspect", "a person decides; a new worker would have done")
        assert "each hour of waiting costs up to" in (await daemon.lane("worker"))["reason"]
        assert await daemon.recycles("worker") == []
