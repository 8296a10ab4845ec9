"""One worker that serves several models: each has its name and its judge, and the worker is recycled as one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.fakes import set_knobs
from tests.scenarios.daemon_process import RunningDaemon, running_daemon
from tests.scenarios.quick_lanes import BUSY_CANARY, ask, chat, config, generation, quick_lane, record
from tests.waiting import wait_until

FRESH_RUNS = 5
"""Of the further model: enough for a baseline that convicts a worker at 30 %."""


def two_models(worker: dict[str, Any], **keys: Any) -> dict[str, Any]:
    both = {"model": "Big-4bit", "second_model": "Small-4bit", "strict_model": True, "tok_s": 200.0}
    return quick_lane({**both, **worker}, served_model="Big-4bit", serves={"coder": "Small-4bit"}, **keys)


async def test_each_name_reaches_the_worker_as_the_model_that_it_stands_for(tmp_path: Path) -> None:
    asked = tmp_path / "asked.jsonl"
    lane = two_models({"requests_file": asked}, aliases=["main"])
    async with running_daemon(tmp_path / "daemon", config(worker=lane)) as daemon:
        await daemon.serving("worker")
        for name in ("worker", "main", "coder"):
            status, text = await ask(daemon, chat(f"for {name}", model=name))
            assert (status, "[DONE]" in text) == (200, True)
        bodies = [json.loads(line)["body"] for line in asked.read_text().splitlines()]
        asks = [json.loads(body) for body in bodies if "messages" in body]
        told = {one["messages"][0]["content"]: one["model"] for one in asks}
        assert {name: told[f"for {name}"] for name in ("worker", "main", "coder")} == {
            "worker": "Big-4bit",
            "main": "Big-4bit",
            "coder": "Small-4bit",
        }
        listed = await daemon.get("/v1/models")
        assert {model["id"] for model in listed["data"]} == {"worker", "main", "coder"}


@pytest.mark.slow
async def test_one_model_that_has_become_slow_alone_is_named_and_a_new_worker_cures_it(tmp_path: Path) -> None:
    control = tmp_path / "knobs.json"
    canary = {**BUSY_CANARY, "every": "500ms", "max_tokens": 24}
    lane = two_models({"control": control, "ill_generations": 1, "stats": "none", "remedies": "none"}, canary=canary)
    async with running_daemon(tmp_path / "daemon", config(worker=lane)) as daemon:
        await daemon.serving("worker")
        await _is_known(daemon)
        set_knobs(control, second_factor=0.3)
        found = await record(daemon, "degraded", 60.0)
        assert found["before"]["model"] == "coder"
        assert found["reason"].startswith("coder: ")
        assert found["before"]["ratio"] < 0.9
        assert found["outcome"] == "cured"
        assert found["after"]["decode_tok_s"] > 1.5 * found["before"]["decode_tok_s"]
        await generation(daemon, 2)
        samples = await daemon.samples("worker")
        own = [one for one in samples if not one["model"] and one["void"] is None]
        assert len(own) >= 5, "the lane's own model is measured in turn"


async def test_a_further_model_that_cannot_be_had_is_no_hang(tmp_path: Path) -> None:
    lane = two_models({"second_model": "Another", "stats": "none"}, canary={**BUSY_CANARY, "every": "300ms"})
    async with running_daemon(tmp_path / "daemon", config(worker=lane)) as daemon:
        await daemon.serving("worker")

        async def refused() -> bool:
            found = [one for one in await daemon.samples("worker") if one["model"] == "coder"]
            return len(found) >= 3 and all(one["void"] == "unmeasurable" for one in found)

        await wait_until(refused, 20.0, "three refused runs of the further model")
        lane_now = await daemon.lane("worker")
        assert (lane_now["state"], lane_now["worker"]["generation"]) == ("serving", 1)
        assert "Small-4bit" in lane_now["models"]["coder"]["last_probe"]["detail"]


async def _is_known(daemon: RunningDaemon) -> None:
    async def known() -> bool:
        models = (await daemon.lane("worker"))["models"]
        return bool(models["coder"]["baseline"]["runs"] >= FRESH_RUNS)

    await wait_until(known, 60.0, "a baseline of the further model")
