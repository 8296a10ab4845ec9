"""What a client and an orchestrator see from the first moment at which the daemon listens."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import aiohttp

from tests.scenarios.daemon_process import RunningDaemon
from tests.scenarios.quick_lanes import chat, config, quick_lane

LANES = 12


async def poll(daemon: RunningDaemon) -> tuple[list[int], list[int]]:
    """Statuses of /readyz, and of a call to the last lane, from the first answer on."""
    readiness: list[int] = []
    calls: list[int] = []
    session = daemon.session
    assert session
    timeout = aiohttp.ClientTimeout(total=0.3)
    deadline = asyncio.get_running_loop().time() + 30
    while len(readiness) < 40:
        assert asyncio.get_running_loop().time() < deadline, daemon.log()
        try:
            async with session.get(daemon.url + "/readyz", timeout=timeout) as answer:
                readiness.append(answer.status)
            body = chat(model=f"lane{LANES - 1}")
            if len(readiness) < 5:
                async with session.post(daemon.url + "/v1/chat/completions", json=body, timeout=timeout) as answer:
                    calls.append(answer.status)
        except (aiohttp.ClientError, TimeoutError):
            pass  # not there yet, or held, as it should be
    return readiness, calls


async def test_from_the_first_answer_on_nothing_is_ready_and_every_lane_is_known(tmp_path: Path) -> None:
    slow: dict[str, Any] = quick_lane({"start_delay": 60})
    daemon = RunningDaemon(tmp_path, config(**{f"lane{number}": slow for number in range(LANES)}))
    daemon.env["TEST_DAEMON_FOLDER"] = str(tmp_path)
    try:
        await daemon.start()
        readiness, calls = await poll(daemon)
        assert set(readiness) == {503}
        assert not calls, "each call is held"
        assert await daemon.end() == 0
    finally:
        await daemon.kill()
        await daemon.session.close()  # type: ignore[union-attr]


async def test_an_address_that_is_not_this_machines_is_not_called_taken(tmp_path: Path) -> None:
    daemon = RunningDaemon(tmp_path, {**config(lane=quick_lane()), "api_keys": ["k" * 20]})
    text = daemon.config_path.read_text().replace(f"127.0.0.1:{daemon.port}", f"192.0.2.1:{daemon.port}")
    daemon.config_path.write_text(text)
    await daemon.start()
    assert daemon.process
    assert daemon.session
    await daemon.session.close()
    assert await asyncio.wait_for(daemon.process.wait(), 30) == 1
    assert "taken" not in daemon.log()
    assert f"192.0.2.1:{daemon.port}" in daemon.log()
    assert "Traceback" not in daemon.log()
