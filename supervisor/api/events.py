"""GET /api/events: what happens, as server-sent events."""

from __future__ import annotations

from collections.abc import AsyncIterator

from aiohttp import web

from supervisor.api.streams import STUCK_AFTER_S, stream
from supervisor.jsontext import encode
from supervisor.shell.eventbus import BusEvent, EventBus, Subscription

HEARTBEAT_S = 15.0
"""Every so often a comment says that the connection lives."""
GREETING = b": freshlane\nretry: 2000\n\n"
HEARTBEAT = b": still here\n\n"


async def answer_events(
    request: web.Request,
    bus: EventBus,
    *,
    heartbeat_s: float = HEARTBEAT_S,
    stuck_after_s: float = STUCK_AFTER_S,
) -> web.StreamResponse:
    """Stream events from now on, or from after ``Last-Event-ID``, until the client or the daemon goes."""
    with bus.subscribe(after=request.headers.get("Last-Event-ID")) as subscription:
        parts = _parts(subscription, heartbeat_s)
        return await stream(request, "text/event-stream", parts, stuck_after_s=stuck_after_s)


async def _parts(subscription: Subscription, heartbeat_s: float) -> AsyncIterator[bytes]:
    yield GREETING
    while not subscription.is_over:
        event = await subscription.next(heartbeat_s)
        if event is not None:
            yield as_sse(event)
        elif not subscription.is_over:
            yield HEARTBEAT


def as_sse(event: BusEvent) -> bytes:
    """One whole event. A ``lagged`` one has no id: the client keeps the last it has."""
    identity = f"id: {event.id}\n" if event.id else ""
    return f"{identity}event: {event.kind}\ndata: {encode(event.document)}\n\n".encode()
