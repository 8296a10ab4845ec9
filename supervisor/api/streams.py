"""Long answers, written as their parts come. A client that stops reading is let go."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from aiohttp import web

from supervisor.api.answers import NO_STORE

STUCK_AFTER_S = 30.0
"""A client that takes nothing for so long is cut off."""


async def stream(
    request: web.Request, content_type: str, parts: AsyncIterator[bytes], *, stuck_after_s: float = STUCK_AFTER_S
) -> web.StreamResponse:
    """Answer with ``parts`` until they end or the client leaves; closes ``parts`` in any case."""
    # Without buffering: proxies in between would hold back what should be seen now.
    response = web.StreamResponse(headers={**NO_STORE, "X-Accel-Buffering": "no"})
    response.content_type = content_type
    response.charset = "utf-8"
    try:
        await response.prepare(request)
        await _write_all(request, response, parts, stuck_after_s)
    except ConnectionResetError:
        pass  # the client has left; that is how it says goodbye
    finally:
        close = getattr(parts, "aclose", None)
        if close is not None:
            await close()
    return response


async def _write_all(
    request: web.Request, response: web.StreamResponse, parts: AsyncIterator[bytes], stuck_after_s: float
) -> None:
    async for part in parts:
        try:
            async with asyncio.timeout(stuck_after_s):
                await response.write(part)
        except TimeoutError:
            if request.transport is not None:
                request.transport.abort()
            return
    with contextlib.suppress(ConnectionResetError):
        await response.write_eof()
