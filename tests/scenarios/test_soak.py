"""Five minutes of chaos, alone on the machine: the bench's own bars hold. Run with `-s` to see how far it is."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest

SOAK = Path(__file__).parents[2] / "bench" / "soak.py"
MINUTES = 5
SEED = 5


@pytest.mark.soak
@pytest.mark.timeout(900)
async def test_five_minutes_of_chaos_lose_no_request_and_leave_nothing_behind(tmp_path: Path) -> None:
    result = tmp_path / "soak.json"
    soak = await asyncio.create_subprocess_exec(
        *(sys.executable, str(SOAK), "--minutes", str(MINUTES), "--seed", str(SEED)),
        *("--keep", str(tmp_path / "soak"), "--json", str(result)),
        stdout=asyncio.subprocess.DEVNULL,
    )
    exit_code = await soak.wait()

    bars = json.loads(result.read_text())["bars"]
    assert {name: bar for name, bar in bars.items() if not bar["holds"]} == {}
    assert exit_code == 0
