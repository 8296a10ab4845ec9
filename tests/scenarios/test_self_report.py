"""What a worker says of itself, in the words of known servers, is evidence and progress; it never decides slowness."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.fakes import set_knobs
from tests.scenarios.daemon_process import running_daemon
from tests.scenarios.quick_lanes import BUSY_CANARY, RESTING_CANARY, ask, begin, chat, config, quick_lane, record
from tests.waiting import wait_until

FRESH, SLOW = 200.0, 70.0
AGED_AFTER_S = 14.0
CANARY = {**BUSY_CANARY, "max_tokens": 24}
AGEING = {"tok_s": FRESH, "decay_to": SLOW, "decay_seconds": AGED_AFTER_S, "decay_shape": "step", "acceptance": 0.5}
OMLX = {"dialect": "omlx", "health_status": "healthy", "stats": "none", "early_headers": True}


def lane(worker: dict[str, Any], **keys: Any) -> dict[str, Any]:
    return quick_lane(worker, **{"canary": CANARY, "baseline": {"fresh_for": "8s"}, **keys})


@pytest.mark.slow
async def test_the_lines_of_an_omlx_that_aged_stand_in_the_record_of_its_recycle(tmp_path: Path) -> None:
    worker = lane({**AGEING, **OMLX}, preset="omlx")
    async with running_daemon(tmp_path, config(worker=worker)) as daemon:
        found = await record(daemon, "degraded", 60.0)
        print(found["cause"])
        assert found["cause"]["kind"] == "worker_aged"
        said = " ".join(found["cause"]["evidence"])
        assert "the server says: step " in said
        assert "backbone" in said
        assert "3.00 -> 3.00 tokens a step" in said

        async def told() -> bool:
            return any(part.startswith("step ") for part in (await daemon.lane("worker"))["said"])

        await wait_until(told, 30.0, "its own words in the lane's snapshot")
        samples = await daemon.samples("worker")
        assert {sample["tokens_per_step"] for sample in samples if sample["void"] is None} == {3.0}


@pytest.mark.slow
async def test_an_omlx_whose_drafts_are_not_taken_any_more_has_lost_acceptance(tmp_path: Path) -> None:
    worker = {**AGEING, **OMLX, "decay_to": FRESH - 0.001, "acceptance_to": 0.0}
    async with running_daemon(tmp_path, config(worker=lane(worker, preset="omlx"))) as daemon:
        found = await record(daemon, "degraded", 60.0)
        print(found["cause"])
        assert found["cause"]["kind"] == "acceptance"


@pytest.mark.parametrize(("dialect", "is_hung"), [("mlx-lm", False), ("none", True)])
async def test_a_prompt_read_in_silence_is_a_hang_unless_the_log_goes_on(
    tmp_path: Path, dialect: str, is_hung: bool
) -> None:
    control = tmp_path / "knobs.json"
    silent = quick_lane(
        {"dialect": dialect, "stats": "none", "control": control, "cached_tokens": False},
        preset="mlx-lm",
        hang={"after": "1s", "pulse": "1h"},
        canary={**RESTING_CANARY, "prompt_tokens": [2048]},
    )
    async with running_daemon(tmp_path / "daemon", config(worker=silent)) as daemon:
        await daemon.serving("worker")
        set_knobs(control, dialect=dialect, prefill_tok_s=100.0)
        asked = begin(daemon, chat("word " * 800))
        if is_hung:
            await daemon.lane_is("worker", "starting")
            set_knobs(control, dialect=dialect)
            await record(daemon, "hung")
        status, text = await asked
        assert (status, "[DONE]" in text) == (200, True)
        assert bool(await daemon.recycles("worker")) is is_hung


async def test_the_coloured_lines_of_a_freetoken_move_while_four_clients_are_answered(tmp_path: Path) -> None:
    worker = {"dialect": "freetoken", "stats": "none", "early_headers": True, "reasoning_tokens": 4}
    lane_ = quick_lane(worker, preset="freetoken", canary=CANARY)
    async with running_daemon(tmp_path, config(worker=lane_)) as daemon:
        await daemon.serving("worker")
        answers = await asyncio.gather(*(begin(daemon, chat(max_tokens=20)) for _ in range(4)))
        assert all(status == 200 and "[DONE]" in text for status, text in answers)
        assert await daemon.recycles("worker") == []
        assert "Decode batch" in (daemon.state_dir / "logs" / "worker.log").read_text()


async def test_a_canary_counts_tokens_of_thinking_under_either_name(tmp_path: Path) -> None:
    knobs = {"reasoning_tokens": 100, "reasoning_field": "reasoning", "framing": "close", "comments_every": 0.2}
    worker = quick_lane({**knobs, "stats": "none"}, preset="mlx-lm", canary=CANARY)
    async with running_daemon(tmp_path, config(worker=worker)) as daemon:
        await daemon.serving("worker")

        async def clean() -> list[dict[str, Any]]:
            return [sample for sample in await daemon.samples("worker") if sample["void"] is None]

        runs = await wait_until(clean, 20.0, "a clean canary")
        assert runs[0]["tokens"] == CANARY["max_tokens"]
        status, text = await ask(daemon, chat(max_tokens=4))
        deltas = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")]
        assert status == 200
        assert any("reasoning" in choice["delta"] for delta in deltas for choice in delta["choices"])
