"""A slow machine is not a slow worker: nothing is restarted, the lanes serve on and say why they are not judged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psutil
import pytest

from supervisor.cli.demo.slowing import slowed
from supervisor.shell.machine.host_reference import PROGRAM
from tests.fakes import set_knobs
from tests.scenarios.daemon_process import RunningDaemon, running_daemon
from tests.scenarios.quick_lanes import ask, chat, config, quick_lane, record
from tests.waiting import wait_until

FRESH = 200.0
OFTEN = {
    "every": "1s",
    "prompt_tokens": [256],
    "max_tokens": 16,
    "idle_for": "0s",
    "budget": "100%",
    "burst_budget": "100%",
    "host_check": "auto",
}
KNOWN_RUNS = 12
"""After so many clean ones a baseline is known, and what the reference usually takes."""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


def lane(**knobs: Any) -> dict[str, Any]:
    """Its worker is fresh until it has its first request, however slowly runs come in on a busy machine."""
    fresh = {"fresh_for": "1h", "fresh_requests": 1}
    return quick_lane({"tok_s": FRESH, "noise": 0.03, **knobs}, canary=OFTEN, baseline=fresh)


async def samples_of(daemon: RunningDaemon, name: str) -> list[dict[str, Any]]:
    return [one for one in await daemon.samples(name) if one["void"] in (None, "host_slow")]


async def more_runs(daemon: RunningDaemon, name: str, count: int) -> list[dict[str, Any]]:
    """Wait for so many more that clients did not disturb; they, oldest first."""
    known = len(await samples_of(daemon, name))

    async def fact() -> list[dict[str, Any]] | None:
        runs = await samples_of(daemon, name)
        return runs if len(runs) >= known + count else None

    runs = list(await wait_until(fact, 60, f"{count} runs of {name}; see {daemon.log_path}"))
    return sorted(runs, key=lambda one: float(one["at"]))[known:]


async def measured_fresh(daemon: RunningDaemon, name: str) -> dict[str, Any]:
    """Wait for the clean runs that make the lane known, then end its worker's freshness; the lane's snapshot."""
    await daemon.serving(name)

    async def fact() -> bool:
        return sum(one["void"] is None for one in await daemon.samples(name)) >= KNOWN_RUNS

    await wait_until(fact, 60, f"{KNOWN_RUNS} clean runs of {name}; see {daemon.log_path}")
    assert (await ask(daemon, chat(model=name)))[0] == 200
    return await daemon.lane(name)


async def verdict_is(daemon: RunningDaemon, name: str, status: str, reason: str = "") -> dict[str, Any]:
    async def fact() -> dict[str, Any] | None:
        snapshot = await daemon.lane(name)
        verdict = snapshot["verdict"]
        return snapshot if verdict["status"] == status and reason in verdict["reason"] else None

    return dict(await wait_until(fact, 60, f"{name} to be {status}; see {daemon.log_path}"))


def reference_pid(daemon: RunningDaemon) -> int:
    """The program that does the fixed piece of work."""
    children = psutil.Process(daemon.pid).children()
    return next(child.pid for child in children if str(PROGRAM) in child.cmdline())


async def test_lanes_that_are_slowed_together_are_not_restarted_and_the_hold_off_lifts_itself(tmp_path: Path) -> None:
    host = tmp_path / "host"
    host.write_text("1.0")
    lanes = {name: lane(host_speed_file=host) for name in ("worker", "other")}
    async with running_daemon(tmp_path / "daemon", config(**lanes)) as daemon:
        before = [await measured_fresh(daemon, name) for name in lanes]
        host.write_text("0.3")
        for name in lanes:
            snapshot = await verdict_is(daemon, name, "unknown", "host_slow")
            assert snapshot["state"] == "serving"
            assert (await ask(daemon, chat(model=name)))[0] == 200
        await more_runs(daemon, "worker", 8)
        host.write_text("1.0")
        after = [await verdict_is(daemon, name, "healthy") for name in lanes]
        assert [each["worker"]["generation"] for each in after] == [1, 1]
        assert [each["baseline"] for each in after] == [each["baseline"] for each in before]
        assert [await daemon.recycles(name) for name in lanes] == [[], []]


async def test_a_lane_slowed_alone_among_its_siblings_is_replaced(tmp_path: Path) -> None:
    control = tmp_path / "knobs.json"
    lanes = {"worker": lane(control=control), "other": lane()}
    async with running_daemon(tmp_path / "daemon", config(**lanes)) as daemon:
        for name in lanes:
            await measured_fresh(daemon, name)
        set_knobs(control, tok_s=60.0)
        found = await record(daemon, "degraded", 60)
        assert found["before"]["ratio"] == pytest.approx(0.3, rel=0.3)
        assert await daemon.recycles("other") == []


async def test_one_lane_on_a_machine_whose_reference_is_slow_too_is_not_restarted(tmp_path: Path) -> None:
    """Worker and reference slow down together; when the machine is fast again, so is the verdict."""
    host = tmp_path / "host"
    host.write_text("1.0")
    async with running_daemon(tmp_path / "daemon", config(worker=lane(host_speed_file=host))) as daemon:
        await measured_fresh(daemon, "worker")
        async with slowed(reference_pid(daemon), 0.05):
            host.write_text("0.3")
            snapshot = await verdict_is(daemon, "worker", "unknown", "host_slow")
            assert "times as long as usual" in snapshot["verdict"]["reason"]
            assert snapshot["state"] == "serving"
            runs = await more_runs(daemon, "worker", 8)
            assert sum(one["void"] == "host_slow" for one in runs) >= 7
            assert (await ask(daemon, chat()))[0] == 200
            host.write_text("1.0")
        await verdict_is(daemon, "worker", "healthy")
        assert await daemon.recycles("worker") == []
