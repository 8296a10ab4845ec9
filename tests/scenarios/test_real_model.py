"""The main promise on the real model: SmolLM2's worker, slowed 3x from outside, is found out and replaced."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scenarios.slowed_model import CANARY, RECYCLE, slowed_and_cured

LANE = {"model": "smollm2-135m", "replace": "in_place", "canary": CANARY, "recycle": RECYCLE}


@pytest.mark.model
@pytest.mark.slow
@pytest.mark.timeout(1800)
async def test_a_worker_slowed_threefold_is_replaced_within_3_canaries_while_a_client_streams(tmp_path: Path) -> None:
    await slowed_and_cured(tmp_path, "smollm2", LANE)
