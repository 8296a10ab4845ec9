"""Lanes whose hours pass in seconds: the same steps, closer together."""

from __future__ import annotations

import asyncio
import contextlib
import copy
from typing import Any

import aiohttp

from tests.fakes import fake_command
from tests.scenarios.daemon_process import RunningDaemon
from tests.waiting import wait_until

RESTING_CANARY = {"every": "1h", "prompt_tokens": [256], "max_tokens": 12, "idle_for": "0s", "timeout": "1s"}
"""One run when the worker is new, and then none: what is tested is something else."""

BUSY_CANARY = {**RESTING_CANARY, "every": "1s", "budget": "100%", "burst_budget": "100%"}

HANG = {"after": "2s", "pulse": "1s"}


def quick_lane(worker: dict[str, Any] | None = None, **keys: Any) -> dict[str, Any]:
    """A lane on a fake worker with these knobs; `keys` are the lane's, and win."""
    lane: dict[str, Any] = {
        "command": fake_command(**(worker or {})),
        "replace": "in_place",
        "stop_timeout": "10s",
        "start_timeout": "20s",
        "hang": HANG,
        "canary": RESTING_CANARY,
        "recycle": {"min_uptime": "0s", "wait_idle": "0s", "max_per_hour": 1000, "max_per_day": 1000},
    }
    lane |= keys
    # A fake worker waits instead of reckoning: a machine that is busy with other tests does not slow it.
    lane["canary"] = {"host_check": "off", **lane["canary"]}
    return copy.deepcopy(lane)  # YAML would write what is shared as an alias


def config(**lanes: dict[str, Any]) -> dict[str, Any]:
    return copy.deepcopy({"lanes": lanes, "fleet": {"shutdown_timeout": "3s"}})


def chat(content: str = "hello", *, max_tokens: int = 8, stream: bool = True, model: str = "worker") -> dict[str, Any]:
    """The body of a chat request."""
    messages = [{"role": "user", "content": content}]
    return {"model": model, "stream": stream, "max_tokens": max_tokens, "messages": messages}


async def ask(daemon: RunningDaemon, body: dict[str, Any], within_s: float = 60.0) -> tuple[int, str]:
    """Status and whole text of an answer."""
    assert daemon.session
    timeout = aiohttp.ClientTimeout(total=within_s)
    async with daemon.session.post(daemon.url + "/v1/chat/completions", json=body, timeout=timeout) as answer:
        content = b""
        with contextlib.suppress(aiohttp.ClientPayloadError):  # what we break off never ends cleanly
            async for part in answer.content.iter_any():
                content += part
        return answer.status, content.decode()


async def record(daemon: RunningDaemon, trigger: str, within_s: float = 20.0, lane: str = "worker") -> dict[str, Any]:
    """Wait for the first record of this trigger."""

    async def fact() -> dict[str, Any] | None:
        return next((one for one in await daemon.recycles(lane) if one["trigger"] == trigger), None)

    return dict(await wait_until(fact, within_s, f"a record of a {trigger} recycle; see {daemon.log_path}"))


async def generation(daemon: RunningDaemon, number: int, within_s: float = 20.0) -> dict[str, Any]:
    """Wait until the worker of this generation, or a later one, serves; the lane's snapshot."""

    async def fact() -> dict[str, Any] | None:
        lane = await daemon.lane("worker")
        is_there = lane["state"] == "serving" and lane["worker"]["generation"] >= number
        return lane if is_there else None

    return dict(await wait_until(fact, within_s, f"generation {number} to serve; see {daemon.log_path}"))


async def inflight(daemon: RunningDaemon, count: int, within_s: float = 10.0) -> None:
    """Wait until so many requests are in flight."""

    async def fact() -> bool:
        return bool((await daemon.lane("worker"))["inflight"] == count)

    await wait_until(fact, within_s, f"{count} requests in flight")


def begin(daemon: RunningDaemon, body: dict[str, Any], within_s: float = 60.0) -> asyncio.Task[tuple[int, str]]:
    """A request that is on its way while the test goes on; await it in the end."""
    return asyncio.ensure_future(ask(daemon, body, within_s))


async def tokens(daemon: RunningDaemon, more_than: int = 0) -> int:
    """Wait until clients have been sent more tokens than that; how many."""

    async def fact() -> int:
        sent = int((await daemon.lane("worker"))["totals"]["generated_tokens"])
        return sent if sent > more_than else 0

    return int(await wait_until(fact, 10.0, "tokens to reach a client"))
