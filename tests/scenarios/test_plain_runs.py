"""On freshlane's own engine a canary is followed by one with speculation off."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.scenarios.daemon_process import running_daemon
from tests.scenarios.quick_lanes import BUSY_CANARY, config
from tests.waiting import wait_until


@pytest.mark.model
@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_our_engine_runs_with_speculation_off_after_each_routine_run(tmp_path: Path) -> None:
    canary = {**BUSY_CANARY, "prompt_tokens": [64], "timeout": "10s"}
    lane = {"model": "smollm2-135m", "replace": "in_place", "canary": canary}
    async with running_daemon(tmp_path, config(worker=lane)) as daemon:
        await daemon.serving("worker", 180)

        async def with_plain() -> list[dict[str, Any]]:
            return [one for one in await daemon.samples("worker") if one["plain_tok_s"]]

        found = await wait_until(with_plain, 60, f"a run with speculation off; see {daemon.log_path}")
    assert {one["purpose"] for one in found} == {"routine"}
    assert all(one["decode_tok_s"] > 0 and one["void"] is None for one in found)
