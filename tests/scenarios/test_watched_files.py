"""Settings that act at once: a worker that they make slower has not aged, and is measured anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes import set_knobs
from tests.scenarios.daemon_process import RunningDaemon, running_daemon
from tests.scenarios.quick_lanes import BUSY_CANARY, config, quick_lane
from tests.waiting import wait_until

FRESH, SLOW = 200.0, 60.0
RUNS = 8


@pytest.mark.slow
async def test_new_settings_that_make_a_worker_slower_are_what_is_usual_from_then_on(tmp_path: Path) -> None:
    control, watched = tmp_path / "knobs.json", tmp_path / "model_settings.json"
    watched.write_text('{"mtp": true}')
    canary = {**BUSY_CANARY, "every": "5s", "max_tokens": 24}
    worker = {"tok_s": FRESH, "control": control, "stats": "none", "remedies": "none"}
    lane = quick_lane(worker, canary=canary, watch_files=[str(watched)])
    async with running_daemon(tmp_path / "daemon", config(worker=lane)) as daemon:
        before = await _known(daemon, RUNS)
        assert before > 2 * SLOW
        watched.write_text('{"mtp": false}')
        set_knobs(control, tok_s=SLOW)

        async def noticed() -> bool:
            changed = (await daemon.lane("worker"))["settings_changed"]
            return changed is not None and changed["files"] == [str(watched)]

        await wait_until(noticed, 20.0, "the change to be noticed")
        after = await _known(daemon, RUNS)
        assert after == pytest.approx(SLOW, rel=0.3)
        now = await daemon.lane("worker")
        assert (now["worker"]["generation"], now["verdict"]["status"]) == (1, "healthy")
        assert await daemon.recycles("worker") == []


async def _known(daemon: RunningDaemon, runs: int) -> float:
    """Wait until the baseline rests on so many runs; what fresh means then, tokens/s."""

    async def known() -> float | None:
        baseline = (await daemon.lane("worker"))["baseline"]
        return baseline["decode_tok_s"] if baseline["runs"] >= runs else None

    return float(await wait_until(known, 60.0, f"{runs} fresh runs"))
