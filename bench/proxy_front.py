"""The front alone: one lane, its gate open to one worker."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from dataclasses import dataclass, field

from aiohttp import web

from supervisor.api.app import assemble
from supervisor.shell.front.gate import Gate
from supervisor.shell.front.upstream import Upstream


@dataclass
class BenchLane:
    """A lane without a runner."""

    name: str = "lane"
    aliases: tuple[str, ...] = ()
    kind: str = "chat"
    gate: Gate = field(default_factory=lambda: Gate(max_inflight=1000))


class OneLane:
    """A directory in which every name means the one lane."""

    def __init__(self) -> None:
        self.lane = BenchLane()

    def find(self, _name: str, /) -> BenchLane:
        return self.lane

    def lanes(self) -> list[BenchLane]:
        return [self.lane]


class OpenSettings:
    """No keys."""

    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()
    max_body = 64_000_000

    def keys_of_clients(self) -> tuple[str, ...]:
        return ()

    def keys_of_admins(self) -> tuple[str, ...]:
        return ()


async def serve(port: int, worker_url: str) -> None:
    """Serve until SIGTERM."""
    directory = OneLane()
    upstream = Upstream(1, worker_url)
    directory.lane.gate.open(upstream)
    app = assemble(directory, OpenSettings, "token", ())
    runner = web.AppRunner(app, handler_cancellation=True, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    with contextlib.suppress(asyncio.CancelledError):
        await stopping.wait()
    await runner.cleanup()
    await upstream.close()
