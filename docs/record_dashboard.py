"""Takes docs/dashboard-*.png: a real daemon, fake workers that age in a minute, two clients, a real Chromium.

Run it from the repository's root: `.venv/bin/python -m docs.record_dashboard`. Takes five minutes.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

from playwright.async_api import ViewportSize, expect

from tests.fakes import fake_command
from tests.scenarios.browser import visiting
from tests.scenarios.daemon_process import RunningDaemon, running_daemon
from tests.scenarios.streaming_clients import Clients
from tests.waiting import wait_until

DOCS = Path(__file__).parent
DESK = ViewportSize(width=1240, height=1130)
RECYCLES = 4
CLIENTS, BUSY_S, IDLE_S = 2, 8.0, 10.0
LONGEST_S = 1200.0


def lane(**knobs: Any) -> dict[str, Any]:
    """Hours in minutes."""
    canary = {
        "every": "2s",
        "prompt_tokens": [256, 3072],
        "max_tokens": 24,
        "max_time": "2s",
        "idle_for": "0s",
        "budget": "100%",
        "burst_budget": "100%",
        "hold": "20s",
        "force_after": "4s",
        "host_check": "off",
    }
    recycle = {"min_uptime": "0s", "wait_idle": "0s", "max_hold": "60s", "max_per_hour": 1000, "max_per_day": 1000}
    command = fake_command(noise=0.03, memory_mb=180, prefill_tok_s=40_000, **knobs)
    return {"command": command, "replace": "in_place", "canary": canary, "recycle": recycle}


async def main() -> None:
    """Let a lane age and be recycled a few times, then look at it."""
    lanes = {
        "qwen": lane(decay_from=66.5, decay_to=20.5, decay_requests=260),
        "coder": lane(tok_s=41),
        "notes": lane(tok_s=120),
    }
    with tempfile.TemporaryDirectory() as folder:
        async with running_daemon(Path(folder) / "daemon", {"lanes": lanes}) as daemon:
            await age(daemon)
            for scheme in ("light", "dark"):
                async with visiting(daemon.url, viewport=DESK, color_scheme=scheme) as visit:
                    await expect(visit.page.locator(".marker").nth(RECYCLES - 1)).to_be_visible()
                    await visit.page.screenshot(path=DOCS / f"dashboard-{scheme}.png")


async def age(daemon: RunningDaemon) -> None:
    """Until the lane has been recycled as often as wanted."""

    async def is_known() -> bool:
        return len((await daemon.lane("qwen"))["baseline"]["by_prompt_tokens"]) == 2

    await wait_until(is_known, 300.0, "what fresh means at both sizes")
    await daemon.post("/api/lanes/notes/drain", {"reason": "quiet while indexing"})
    async with asyncio.timeout(LONGEST_S):
        while len(await daemon.recycles("qwen")) < RECYCLES:
            clients = Clients(daemon.url, "qwen", lengths=(8, 8, 24))
            running = asyncio.ensure_future(clients.run(CLIENTS))
            await asyncio.sleep(BUSY_S)
            clients.stop()
            await running
            await asyncio.sleep(IDLE_S)


if __name__ == "__main__":
    asyncio.run(main())
