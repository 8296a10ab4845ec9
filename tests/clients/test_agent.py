"""An agent works through the front by its base_url alone, also while the worker is replaced."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from tests.clients.agent import Agent, Step
from tests.fakes import expected_text
from tests.scenarios.daemon_process import RunningDaemon, running_daemon
from tests.scenarios.quick_lanes import config, inflight, quick_lane

TOKENS = 40


@asynccontextmanager
async def serving(folder: Path, **knobs: Any) -> AsyncIterator[tuple[RunningDaemon, aiohttp.ClientSession]]:
    lane = quick_lane({"tok_s": 60, **knobs}, hold={"comments_after": "200ms"}, recycle={"wait_idle": "0s"})
    async with running_daemon(folder, config(worker=lane)) as daemon, aiohttp.ClientSession() as session:
        await daemon.serving("worker")
        yield daemon, session


async def test_an_agent_calls_its_tool_and_answers_though_the_worker_is_replaced_meanwhile(tmp_path: Path) -> None:
    async with serving(tmp_path, start_delay=1.5) as (daemon, session):
        agent = Agent(session, f"{daemon.url}/v1", "worker", TOKENS)
        running = asyncio.ensure_future(agent.run("tell"))
        await inflight(daemon, 1)
        assert (await daemon.post("/api/lanes/worker/recycle?wait=true"))[0] == 200
        called, answered = await running
    [call] = called.calls.values()
    assert (called.finish, call.name) == ("tool_calls", "say")
    assert json.loads(call.arguments) == {"text": expected_text("tell", TOKENS)}
    assert answered.text == expected_text(expected_text("tell", TOKENS), TOKENS)
    assert answered.comments >= 2, "the second step was held, and kept alive"
    assert answered.usage
    assert answered.usage["completion_tokens"] == TOKENS


async def test_an_agent_that_is_interrupted_leaves_nothing_behind_and_goes_on(tmp_path: Path) -> None:
    async with serving(tmp_path, tok_s=20) as (daemon, session):
        agent = Agent(session, f"{daemon.url}/v1", "worker", 400)
        agent.messages = [{"role": "user", "content": "tell"}]
        step = Step()
        stream = agent.stream(step)
        async for _ in stream:
            if step.calls:
                break
        await stream.aclose()

        await inflight(daemon, 0)
        again = Agent(session, f"{daemon.url}/v1", "worker", 4)
        assert [each.finish for each in await again.run("more")] == ["tool_calls", "length"]
