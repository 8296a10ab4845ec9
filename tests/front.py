"""The front on a real port, with a gate that the test opens itself."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from aiohttp import web

from supervisor.api.app import assemble
from supervisor.shell.front.gate import Gate
from supervisor.shell.front.upstream import Upstream
from tests.waiting import wait_until

TOKEN = "the-token-of-the-commands"


@dataclass
class PlainLane:
    name: str = "lane"
    aliases: Sequence[str] = ("alias",)
    kind: str = "chat"
    gate: Gate = field(default_factory=Gate)


@dataclass
class PlainDirectory:
    all: list[PlainLane]

    def find(self, name: str, /) -> PlainLane | None:
        return next((lane for lane in self.all if name in (lane.name, *lane.aliases)), None)

    def lanes(self) -> list[PlainLane]:
        return self.all


@dataclass
class PlainSettings:
    client_keys: tuple[str, ...] = ()
    admin_keys: tuple[str, ...] = ()
    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()
    max_body: int = 64_000_000

    def keys_of_clients(self) -> tuple[str, ...]:
        return self.client_keys

    def keys_of_admins(self) -> tuple[str, ...]:
        return self.admin_keys or self.client_keys


class Front:
    """A front that listens, one lane, and a client."""

    def __init__(
        self, lanes: list[PlainLane], settings: PlainSettings, port: int, client: aiohttp.ClientSession
    ) -> None:
        self.lanes = lanes
        self.settings = settings
        self.port = port
        self.client = client
        self.upstreams: list[Upstream] = []

    @property
    def gate(self) -> Gate:
        return self.lanes[0].gate

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def open_to(self, url: str, **terms: Any) -> Upstream:
        """Opens the gate to a worker of the next generation."""
        upstream = Upstream(len(self.upstreams) + 1, url, **terms)
        self.upstreams.append(upstream)
        self.gate.open(upstream)
        return upstream

    def post(self, path: str = "/v1/chat/completions", **more: Any) -> Any:
        return self.client.post(self.url + path, **more)

    async def quiet(self) -> None:
        """Waits until nothing is in flight and nobody waits."""
        await wait_until(lambda: not self.gate.inflight() and not self.gate.queued, what="a quiet gate")


@asynccontextmanager
async def front(
    *,
    settings: PlainSettings | None = None,
    lanes: list[PlainLane] | None = None,
    more: Iterable[web.AbstractRouteDef] = (),
    **gate: Any,
) -> AsyncIterator[Front]:
    lanes = [PlainLane(gate=Gate(**gate))] if lanes is None else lanes
    settings = settings or PlainSettings()
    app = assemble(PlainDirectory(lanes), lambda: settings, TOKEN, more)
    runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=8)) as client:
        stage = Front(lanes, settings, runner.addresses[0][1], client)
        try:
            yield stage
        finally:
            await runner.cleanup()
            for upstream in stage.upstreams:
                await upstream.close()


def chat(prompt: str = "hello", tokens: int = 5, *, stream: bool = True, model: str = "lane") -> dict[str, Any]:
    """The body of a chat request."""
    return {
        "model": model,
        "messages": [{"role": "user", "content": prompt}],
        "max_tokens": tokens,
        "stream": stream,
    }


def text_of(stream: bytes) -> str:
    """What a chat stream says."""
    return "".join(
        choice["delta"].get("content") or ""
        for event in data_of(stream)
        if isinstance(event, dict)
        for choice in event.get("choices", [])
    )


def data_of(stream: bytes) -> list[Any]:
    """The data of each whole event, parsed where it is JSON."""
    lines = [line.removeprefix(b"data: ") for line in stream.split(b"\n") if line.startswith(b"data: ")]
    return ["[DONE]" if line == b"[DONE]" else json.loads(line) for line in lines]
