"""Workers that age, hosts that are slow, contexts that are long: who is replaced, and what the record says of it.

What takes hours in life takes seconds here: a probe each second. A worker is fresh until its first request, and ages by
what it has served, so a busy machine only makes it all last longer.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.fakes import set_knobs
from tests.scenarios.daemon_process import RunningDaemon, running_daemon
from tests.scenarios.quick_lanes import ask, chat, config, generation, quick_lane
from tests.waiting import wait_until

FRESH = 200.0
CANARY = {
    "every": "1s",
    "prompt_tokens": [256],
    "max_tokens": 24,
    "idle_for": "0s",
    "budget": "100%",
    "burst_budget": "100%",
}
TWO_SIZES = {**CANARY, "prompt_tokens": [256, 2048]}
UNTIL_A_REQUEST = {"fresh_for": "1h", "fresh_requests": 1}
AGED_AFTER_REQUESTS = 22
"""Canaries and their warm-ups: by then all runs that count as fresh are in."""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


def lane(worker: dict[str, Any], **keys: Any) -> dict[str, Any]:
    """A lane that is probed each second."""
    knobs = {"tok_s": FRESH, "noise": 0.03, **worker}
    return quick_lane(knobs, **{"canary": CANARY, "baseline": UNTIL_A_REQUEST, **keys})


def aged(to: float) -> dict[str, Any]:
    """Each process falls to this rate at once, after so many requests."""
    return {"decay_from": FRESH, "decay_to": to, "decay_requests": AGED_AFTER_REQUESTS, "decay_shape": "step"}


async def no_longer_fresh(daemon: RunningDaemon) -> None:
    """A client asks once."""
    status, _ = await ask(daemon, chat())
    assert status == 200


async def recycled(daemon: RunningDaemon, trigger: str = "degraded", within_s: float = 60.0) -> dict[str, Any]:
    """Wait for the first record of this trigger."""

    async def fact() -> dict[str, Any] | None:
        return next((one for one in await daemon.recycles("worker") if one["trigger"] == trigger), None)

    return dict(await wait_until(fact, within_s, f"a {trigger} recycle; see {daemon.log_path}"))


async def clean_runs(daemon: RunningDaemon, more: int, within_s: float = 60.0) -> None:
    """Wait for so many more canaries that count."""

    async def count() -> int:
        return sum(sample["void"] is None for sample in await daemon.samples("worker"))

    before = await count()

    async def fact() -> bool:
        return await count() >= before + more

    await wait_until(fact, within_s, f"{more} clean canaries; see {daemon.log_path}")


async def verdict_is(daemon: RunningDaemon, status: str, within_s: float = 60.0) -> dict[str, Any]:
    """Wait for a verdict; the lane's snapshot."""

    async def fact() -> dict[str, Any] | None:
        snapshot = await daemon.lane("worker")
        return snapshot if snapshot["verdict"]["status"] == status else None

    return dict(await wait_until(fact, within_s, f"verdict {status}; see {daemon.log_path}"))


async def test_a_worker_pinned_in_a_low_gear_is_replaced_and_the_record_says_what_that_brought(tmp_path: Path) -> None:
    """FreeToken's report: fresh 60 to 120 tok/s, then a stable fifth of it, for short prompts too."""
    async with running_daemon(tmp_path / "daemon", config(worker=lane(aged(40.0)))) as daemon:
        await daemon.serving("worker")
        record = await recycled(daemon)
    assert (record["outcome"], record["cause"]["kind"]) == ("cured", "worker_aged")
    assert record["before"]["ratio"] == pytest.approx(0.2, rel=0.3)
    assert record["before"]["interval"][0] <= record["before"]["ratio"] <= record["before"]["interval"][1]
    assert record["before"]["confidence"] > 0.9
    assert record["after"]["ratio"] == pytest.approx(1.0, rel=0.2)
    assert len(record["after"]["samples"]) == 5
    assert record["drain"]["cut"] == record["requests"]["failed"] == 0


async def test_where_steps_give_fewer_tokens_but_take_as_long_the_cause_is_acceptance(tmp_path: Path) -> None:
    """SGLang's report: acceptance falls to nothing, 2.9 times slower, step time unchanged."""
    fading = {"acceptance": 0.8, "acceptance_to": 0.0, "decay_requests": AGED_AFTER_REQUESTS, "decay_shape": "step"}
    async with running_daemon(tmp_path / "daemon", config(worker=lane(fading))) as daemon:
        await daemon.serving("worker")
        record = await recycled(daemon)
    assert (record["outcome"], record["cause"]["kind"]) == ("cured", "acceptance")
    assert any("a step gives" in sentence for sentence in record["cause"]["evidence"])


async def test_a_worker_that_does_not_age_is_left_alone(tmp_path: Path) -> None:
    """llama.cpp's control: the same speed after a day; here sixty canaries, one in ten at half rate."""
    worker = lane({"noise": 0.1, "outliers": 0.1}, canary={**CANARY, "every": "300ms"})
    async with running_daemon(tmp_path / "daemon", config(worker=worker)) as daemon:
        await daemon.serving("worker")
        await clean_runs(daemon, 60, within_s=150)
        assert await daemon.recycles("worker") == []


async def test_a_worker_slow_at_one_context_size_alone_is_named_by_that_size_and_verified_there(tmp_path: Path) -> None:
    """vLLM's report: slower only at one context size."""
    control = tmp_path / "knobs.json"
    worker = lane({"control": control}, canary=TWO_SIZES)
    async with running_daemon(tmp_path / "daemon", config(worker=worker)) as daemon:
        await daemon.serving("worker")

        async def knows_both() -> bool:
            return set((await daemon.lane("worker"))["baseline"]["by_prompt_tokens"]) == {"256", "2048"}

        await wait_until(knows_both, 60, f"a baseline at both sizes; see {daemon.log_path}")
        await clean_runs(daemon, 14)
        await no_longer_fresh(daemon)
        set_knobs(control, ms_per_1k=2.2)
        record = await recycled(daemon, within_s=90)
    assert "2048 prompt tokens" in record["reason"]
    assert record["before"]["by_prompt_tokens"]["256"] > 1.4 * record["before"]["by_prompt_tokens"]["2048"]
    assert record["outcome"] == "futile", "the new worker is as slow there, and only there"


async def test_long_contexts_slow_beside_a_good_canary_are_no_reason_to_recycle(tmp_path: Path) -> None:
    """The answer to FreeToken's report, where it would have been right: "that is just context"."""
    async with running_daemon(tmp_path / "daemon", config(worker=lane({"ms_per_1k": 4.0}))) as daemon:
        await daemon.serving("worker")
        await clean_runs(daemon, 8)
        for _ in range(5):
            status, _ = await ask(daemon, chat("word " * 6000, max_tokens=40))
            assert status == 200
        await clean_runs(daemon, 10)
        snapshot = await verdict_is(daemon, "healthy")
        assert snapshot["state"] == "serving"
        assert await daemon.recycles("worker") == []


async def test_a_slow_host_costs_one_recycle_then_holds_off_and_lifts_when_it_is_fast_again(tmp_path: Path) -> None:
    """Thermal, low power, a fallback to the CPU: the process is not to blame, and the lane serves on."""
    host = tmp_path / "host"
    host.write_text("1.0")
    async with running_daemon(tmp_path / "daemon", config(worker=lane({"host_speed_file": host}))) as daemon:
        before = await daemon.serving("worker")
        await clean_runs(daemon, 10)
        await no_longer_fresh(daemon)
        before = await daemon.lane("worker")
        host.write_text("0.3")
        record = await recycled(daemon)
        assert record["outcome"] == "futile"
        assert "30 min" in record["next"]
        await clean_runs(daemon, 8)
        await no_longer_fresh(daemon)
        host.write_text("1.0")
        after = await verdict_is(daemon, "healthy")
        assert len(await daemon.recycles("worker")) == 1
        assert after["baseline"]["decode_tok_s"] == pytest.approx(before["baseline"]["decode_tok_s"], rel=0.15)


async def test_a_recycle_that_brings_little_back_is_partial_and_not_repeated(tmp_path: Path) -> None:
    """Crow's report: 15 to 1 tok/s, and recycling brings back a part of it."""
    counter, host = tmp_path / "spawns", tmp_path / "host"
    host.write_text("1.0")
    worker = lane(
        {"spawn_speeds": [200, 90, 90, 90], "spawn_counter": counter, "host_speed_file": host, "start_delay": 1.0}
    )
    async with running_daemon(tmp_path / "daemon", config(worker=worker)) as daemon:
        await daemon.serving("worker")
        await clean_runs(daemon, 10)
        await no_longer_fresh(daemon)
        host.write_text("0.1")

        async def is_stopped() -> bool:
            worker = (await daemon.lane("worker"))["worker"]
            return bool(worker and worker["generation"] == 2)

        await wait_until(is_stopped, 60, f"the second worker; see {daemon.log_path}")
        host.write_text("1.0")
        record = await recycled(daemon)
        assert record["outcome"] == "partial"
        assert "no recycle for slowness within 30 min" in record["next"]
        await clean_runs(daemon, 10)
        assert [one["trigger"] for one in await daemon.recycles("worker")] == ["degraded"]


async def test_a_spawn_that_came_up_slow_is_tried_again(tmp_path: Path) -> None:
    """ROCm's report: spawns land at 33 or 26 tok/s."""
    worker = lane({"spawn_speeds": [200, 200, 200, 140, 200], "spawn_counter": tmp_path / "spawns"})
    async with running_daemon(tmp_path / "daemon", config(worker=worker)) as daemon:
        await daemon.serving("worker")
        for number in (2, 3, 4):
            await clean_runs(daemon, 8)
            status, _ = await daemon.post("/api/lanes/worker/recycle?wait=true")
            assert status == 200
            await generation(daemon, number)
        record = await recycled(daemon, "bad_spawn", within_s=30)
        assert record["outcome"] == "cured"
        assert record["after"]["decode_tok_s"] == pytest.approx(FRESH, rel=0.2)
        await asyncio.wait_for(generation(daemon, 5), 30)


async def test_a_worker_that_reads_slowly_and_writes_well_is_named_and_stays(tmp_path: Path) -> None:
    control = tmp_path / "knobs.json"
    async with running_daemon(
        tmp_path / "daemon", config(worker=lane({"control": control, "prefill_tok_s": 900}))
    ) as daemon:
        await daemon.serving("worker")
        await no_longer_fresh(daemon)
        set_knobs(control, prefill_tok_s=250)

        async def is_named() -> dict[str, Any] | None:
            verdict = (await daemon.lane("worker"))["verdict"]
            return verdict if (verdict["prefill"] or {}).get("status") == "degraded" else None

        verdict = dict(await wait_until(is_named, 90, f"slow reading to be named; see {daemon.log_path}"))
        assert verdict["status"] == "healthy"
        assert verdict["prefill"]["ratio"] < 0.6, "a busy machine reads slowly from the start"
        assert "prefill is slow" in verdict["reason"]
        assert (await daemon.lane("worker"))["baseline"]["prefill"]["runs"] >= 5
        assert await daemon.recycles("worker") == []


@pytest.mark.parametrize(("kind", "tok_s"), [("completions", FRESH), ("embeddings", 800.0)])
async def test_an_aged_worker_of_any_kind_is_found_and_replaced(kind: str, tok_s: float, tmp_path: Path) -> None:
    knobs = {"decay_from": tok_s, "decay_to": tok_s / 4, "decay_requests": AGED_AFTER_REQUESTS, "decay_shape": "step"}
    async with running_daemon(tmp_path / "daemon", config(worker=lane(knobs, kind=kind))) as daemon:
        await daemon.serving("worker")
        record = await recycled(daemon)
    assert record["outcome"] == "cured"
    assert record["before"]["baseline_tok_s"] == pytest.approx(tok_s, rel=0.25)
    assert record["before"]["ratio"] == pytest.approx(0.25, rel=0.3)
