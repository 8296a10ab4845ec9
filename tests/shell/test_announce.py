"""Who is told of a recycle, also where one of them does not listen."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp import web

from supervisor.settings import OnRecycleSettings
from supervisor.shell.announce import Announcer
from supervisor.shell.eventbus import EventBus
from supervisor.shell.tasks import Tasks
from tests.conftest import find_free_port
from tests.waiting import wait_until

RECORD = {"id": "chat-1", "lane": "chat", "trigger": "hung", "outcome": "cured", "downtime_s": 12.0}
ANNOUNCED = {"text": "chat: The worker hung. No worker served for 12 s; no request waited, none failed.", **RECORD}
"""What Slack shows is the text."""


@asynccontextmanager
async def announcing(**settings: Any) -> AsyncIterator[EventBus]:
    bus, tasks = EventBus(), Tasks()
    tasks.start(Announcer(OnRecycleSettings(**settings), bus).run(), "announce")
    await wait_until(lambda: bus.listeners)
    yield bus
    await tasks.close()


def keeping(folder: Path) -> tuple[list[str], Path]:
    """A command that keeps what it is given, one line a record."""
    kept = folder / "kept"
    program = f"import sys; open({str(kept)!r}, 'a').write(sys.stdin.read() + '\\n')"
    return [sys.executable, "-c", program], kept


async def test_the_command_gets_the_record_though_nobody_answers_at_the_webhook(tmp_path: Path) -> None:
    command, kept = keeping(tmp_path)
    async with announcing(webhook=f"http://127.0.0.1:{find_free_port()}/", command=command) as bus:
        bus.publish("state", {"lane": "chat", "state": "serving"})
        bus.publish("recycle", RECORD)
        await wait_until(lambda: kept.exists() and kept.read_text())
    assert json.loads(kept.read_text()) == ANNOUNCED


async def test_a_webhook_that_never_answers_holds_up_neither_the_command_nor_later_records(tmp_path: Path) -> None:
    posted: list[Any] = []

    async def swallow(request: web.Request) -> web.Response:
        posted.append(await request.json())
        await asyncio.Event().wait()
        return web.Response()

    app = web.Application()
    app.router.add_post("/", swallow)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    port = find_free_port()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    command, kept = keeping(tmp_path)
    try:
        async with announcing(webhook=f"http://127.0.0.1:{port}/", command=command) as bus:
            bus.publish("recycle", RECORD)
            await wait_until(lambda: kept.exists() and kept.read_text(), 5)
            assert posted == [ANNOUNCED]
    finally:
        await runner.cleanup()
