"""GET /api/events: what happens reaches a listener, at once, and a listener that comes back misses nothing."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
from aiohttp import web

from supervisor.api.events import answer_events
from supervisor.shell.eventbus import EventBus
from tests.api.small_fleet import SmallFleet
from tests.waiting import wait_until


async def next_block(answer: aiohttp.ClientResponse) -> str:
    """Text up to the next blank line."""
    return (await asyncio.wait_for(answer.content.readuntil(b"\n\n"), 5)).decode().rstrip("\n")


async def next_event(answer: aiohttp.ClientResponse) -> tuple[dict[str, str], dict[str, Any]]:
    """The fields of the next event that is no comment, and its document."""
    while True:
        fields = dict(line.split(": ", 1) for line in (await next_block(answer)).splitlines() if line[0] != ":")
        if "data" in fields:
            return fields, json.loads(fields["data"])


async def test_a_listener_hears_what_happens(small_client: aiohttp.ClientSession, small_fleet: SmallFleet) -> None:
    async with small_client.get("/api/events") as answer:
        assert answer.content_type == "text/event-stream"
        assert (await next_block(answer)).startswith(": freshlane")
        small_fleet.events.publish("state", {"lane": "qwen", "text": "two\nlines", "rate": float("nan")})
        fields, document = await next_event(answer)
        assert fields["event"] == "state"
        assert document == {"lane": "qwen", "text": "two\nlines", "rate": None}
    await wait_until(lambda: small_fleet.events.listeners == 0, what="the listener's end")


async def test_a_listener_that_comes_back_with_its_last_id_misses_nothing(
    small_client: aiohttp.ClientSession, small_fleet: SmallFleet
) -> None:
    async with small_client.get("/api/events") as answer:
        await next_block(answer)
        small_fleet.events.publish("state", {"number": 1})
        fields, _ = await next_event(answer)
    small_fleet.events.publish("state", {"number": 2})
    async with small_client.get("/api/events", headers={"Last-Event-ID": fields["id"]}) as answer:
        _, document = await next_event(answer)
        assert document == {"number": 2}
    async with small_client.get("/api/events", headers={"Last-Event-ID": "from-another-life"}) as answer:
        fields, document = await next_event(answer)
        assert fields == {"event": "lagged", "data": '{"lost":null}'}


async def test_a_daemon_that_goes_ends_the_stream_cleanly(
    small_client: aiohttp.ClientSession, small_fleet: SmallFleet
) -> None:
    async with small_client.get("/api/events") as answer:
        await next_block(answer)
        small_fleet.events.publish("recycle", {"id": "1"})
        small_fleet.events.close()
        assert "event: recycle" in await asyncio.wait_for(answer.text(), 5)


@asynccontextmanager
async def served_bus(**options: float) -> AsyncIterator[tuple[EventBus, int]]:
    """A bus, and the port on which it is streamed."""
    bus = EventBus(room=64)

    async def handler(request: web.Request) -> web.StreamResponse:
        return await answer_events(request, bus, **options)

    app = web.Application()
    app.router.add_get("/", handler)
    runner = web.AppRunner(app, shutdown_timeout=1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield bus, runner.addresses[0][1]
    finally:
        bus.close()
        await runner.cleanup()


async def test_a_quiet_stream_says_that_it_lives() -> None:
    async with (
        served_bus(heartbeat_s=0.02) as (_, port),
        aiohttp.ClientSession() as client,
        client.get(f"http://127.0.0.1:{port}/") as answer,
    ):
        await next_block(answer)
        assert [await next_block(answer) for _ in range(2)] == [": still here"] * 2


async def test_a_client_that_stops_reading_is_let_go() -> None:
    async with served_bus(stuck_after_s=0.05) as (bus, port):
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            await wait_until(lambda: bus.listeners == 1, what="the listener")

            def is_gone() -> bool:
                bus.publish("sample", {"ballast": "x" * 1_000_000})
                return bus.listeners == 0

            await wait_until(is_gone, what="the end of a listener that never reads")
