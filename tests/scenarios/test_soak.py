"""A short soak: the same chaos as `bench/soak.py`, from a fixed seed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.soak import soak

SECONDS = 60.0
SEED = 3


@pytest.mark.slow
@pytest.mark.timeout(400)
async def test_a_minute_of_chaos_loses_no_request_and_leaves_nothing_behind(tmp_path: Path) -> None:
    result = await soak(tmp_path, SECONDS, SEED)
    print(json.dumps(result, indent=2))
    assert [name for name, held in result["invariants"].items() if not held] == [], json.dumps(result, indent=2)
    assert result["requests"]["whole"] > 300
    assert result["events"]["faults"] >= 8
    assert result["recycles"]["all"] >= 5
    assert result["quiet_moments"] >= 2
