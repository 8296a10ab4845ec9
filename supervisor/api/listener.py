"""Where clients connect: a socket whose connections have to say what they want within a time.

aiohttp itself gives a connection for ever to bring its first request; one that drips a byte now and then, a thousand
times over, would take all file descriptors there are.
"""

from __future__ import annotations

import asyncio
import contextlib
import resource
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

from aiohttp import web
from aiohttp.typedefs import Handler
from aiohttp.web_protocol import RequestHandler

from supervisor.shell.front.refusal import RefusedError

HEAD_TIMEOUT_S = 20.0
"""From the connection to the end of its first request's headers."""

KEEP_ALIVE_S = 75.0
"""From an answer to the end of the next request's headers."""

CLOSE_S = 5.0
BACKLOG = 512

FILES_WANTED = 65_536
FILES_KEPT = 80
"""For the daemon itself: workers' pipes, the history, logs, and what it reads of the machine."""
FILES_A_CLIENT = 2
"""Its own connection, and one to a worker."""
FEWEST_CONNECTIONS = 16


class PunctualHandler(RequestHandler):
    """One connection."""

    __slots__ = ("_late",)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The clock starts."""
        super().connection_made(transport)
        self._late = asyncio.get_running_loop().call_later(HEAD_TIMEOUT_S, transport.close)

    def connection_lost(self, exc: BaseException | None) -> None:
        """The client has left."""
        self._late.cancel()
        super().connection_lost(exc)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """What is no HTTP is the client's fault: told in OpenAI's shape, and no matter for the log."""
        if status >= 500 or request.writer.output_size > 0:
            return super().handle_error(request, status, exc, message)
        answer = web.Response(status=status, body=RefusedError(status, "bad_request", "This is no HTTP request.").body)
        answer.content_type = "application/json"
        answer.force_close()
        return answer

    def head_came(self) -> None:
        """The first request is known: what it takes from here on is its route's to limit."""
        self._late.cancel()


class TurnedAway(asyncio.Protocol):
    """A connection too many. The daemon needs files of its own to look after its workers."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Say so, and part."""
        if isinstance(transport, asyncio.WriteTransport):
            body = RefusedError(503, "too_many_connections", "There are too many connections; try again later.").body
            head = f"HTTP/1.1 503 Service Unavailable\r\nContent-Length: {len(body)}\r\n"
            transport.write((head + "Retry-After: 5\r\nConnection: close\r\n\r\n").encode() + body)
        transport.close()


def most_connections() -> int:
    """How many clients the limit of open files allows, after as much was asked for as can be had."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES_WANTED if hard == resource.RLIM_INFINITY else min(hard, FILES_WANTED)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
    files = FILES_WANTED if soft == resource.RLIM_INFINITY else soft
    return max(FEWEST_CONNECTIONS, (files - FILES_KEPT) // FILES_A_CLIENT)


@web.middleware
async def note_head(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Tell the connection that its client has said what it wants."""
    if isinstance(request.protocol, PunctualHandler):
        request.protocol.head_came()
    return await handler(request)


@asynccontextmanager
async def listening(app: web.Application, host: str, port: int) -> AsyncIterator[None]:
    """Serve ``app``; OSError where that address cannot be had. A client that leaves ends its request."""
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=CLOSE_S, access_log=None)
    await runner.setup()
    loop = asyncio.get_running_loop()
    manager = cast("web.Server", runner.server)

    most = most_connections()

    def connection() -> asyncio.Protocol:
        if len(manager.connections) >= most:
            return TurnedAway()
        return PunctualHandler(manager, loop=loop, keepalive_timeout=KEEP_ALIVE_S)

    try:
        server = await loop.create_server(connection, host, port, reuse_address=True, backlog=BACKLOG)
        try:
            yield
        finally:
            server.close()
    finally:
        await runner.cleanup()
