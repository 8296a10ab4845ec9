"""How a worker is asked for a mild remedy, over a real port, and what its answer means."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from supervisor.core.lane.commands import ApplyRemedy
from supervisor.core.lane.events import RemedyAnswer, RemedyApplied
from supervisor.core.terms import RemedyName
from supervisor.shell.front.upstream import Upstream
from supervisor.shell.lane.remedy_desk import RemedyDesk
from supervisor.shell.machine.clock import Clock
from supervisor.shell.tasks import Tasks
from tests.config.loading import loaded
from tests.conftest import find_free_port

CLEAR, DROP = RemedyName.CLEAR_CACHE, RemedyName.DROP_PREFIX_CACHE
LANE = {
    "": "lanes: {worker: {command: [worker, '{port}']}}",
    "llama-server": "lanes: {worker: {preset: llama-server, model: /m.gguf}}",
    "vllm": "lanes: {worker: {preset: vllm, model: m}}",
    "freetoken": "lanes: {worker: {preset: freetoken, model: m}}",
    "mlx-lm": "lanes: {worker: {preset: mlx-lm, model: m}}",
}
Answer = Callable[[web.Request], Awaitable[web.Response]]


@asynccontextmanager
async def server(answer: Answer) -> AsyncIterator[Upstream]:
    """Answers every request as told."""
    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", answer)
    runner, port = web.AppRunner(app, shutdown_timeout=0.1), find_free_port()
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    upstream = Upstream(1, f"http://127.0.0.1:{port}", {"Authorization": "Bearer key"})
    try:
        yield upstream
    finally:
        await upstream.close()
        await runner.cleanup()


async def asked(upstream: Upstream, name: RemedyName, preset: str = "", within_s: float = 5.0) -> RemedyApplied:
    told: asyncio.Future[RemedyApplied] = asyncio.get_running_loop().create_future()
    lane = loaded(LANE[preset]).settings.lanes["worker"]
    tasks = Tasks()
    RemedyDesk(lane, Clock(), tasks, told.set_result).apply(ApplyRemedy(1, name, within_s), upstream)
    try:
        return await asyncio.wait_for(told, 10.0)
    finally:
        await tasks.close()


@pytest.mark.parametrize(
    ("preset", "name", "paths", "body"),
    [
        ("", CLEAR, ["/remedies/clear_cache"], None),
        ("vllm", DROP, ["/reset_prefix_cache"], None),
        ("freetoken", CLEAR, ["/v1/cache/rebuild"], {"mode": "if_idle"}),
        ("llama-server", DROP, ["/slots/0?action=erase", "/slots/3?action=erase"], None),
    ],
)
async def test_each_server_is_asked_in_its_own_words(
    preset: str, name: RemedyName, paths: list[str], body: Any
) -> None:
    posted: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        assert request.headers["Authorization"] == "Bearer key"
        if request.method == "GET":
            return web.json_response([{"id": 0}, {"id": 3}])
        posted.append(request.path_qs)
        assert (await request.json() if request.can_read_body else None) == body
        return web.json_response({})

    async with server(answer) as upstream:
        told = await asked(upstream, name, preset)
    assert (told.name, told.answer, told.generation) == (name, RemedyAnswer.DONE, 1)
    assert posted == paths


@pytest.mark.parametrize(("status", "means"), [(404, "absent"), (501, "absent"), (500, "failed"), (503, "failed")])
async def test_what_a_refusal_means(status: int, means: str) -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(status=status, text="not now")

    async with server(answer) as upstream:
        told = await asked(upstream, CLEAR)
    assert (told.answer.value, told.detail) == (means, f"{status} not now")


async def test_a_known_server_without_the_remedy_is_not_asked_at_all() -> None:
    told = await asked(Upstream(1, "http://127.0.0.1:9"), CLEAR, "mlx-lm")
    assert told.answer is RemedyAnswer.ABSENT


async def test_one_that_never_answers_or_is_not_there_has_failed_in_time() -> None:
    async def answer(_: web.Request) -> web.Response:
        await asyncio.Event().wait()
        return web.Response()

    async with server(answer) as upstream:
        told = await asked(upstream, CLEAR, within_s=0.2)
    assert told.answer is RemedyAnswer.FAILED
    assert "not done within" in told.detail
    gone = Upstream(1, f"http://127.0.0.1:{find_free_port()}")
    assert (await asked(gone, CLEAR)).answer is RemedyAnswer.FAILED
    await gone.close()
