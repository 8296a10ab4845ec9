"""Long answers, written as their parts come. A client that stops reading is let go."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping

from aiohttp import web

from supervisor.api.answers import NO_STORE

STUCK_AFTER_S = 30.0
"""A client that takes nothing for so long is cut off."""


async def stream(
    request: web.Request, content_type: str, parts: AsyncIterator[bytes], headers: Mapping[str, str] | None = None
) -> web.StreamResponse:
    """Answer with ``parts`` until they end or the client leaves; closes ``parts`` in any case."""
    # Without buffering: proxies in between would hold back what should be seen now.
    response = web.StreamResponse(headers={**NO_STORE, "X-Accel-Buffering": "no", **(headers or {})})
    response.content_type = content_type
    response.charset = "utf-8"
    try:
        await response.prepare(request)
        await _write_all(request, response, parts)
    except ConnectionResetError:
        pass  # the client has left; that is how it says goodbye
    finally:
        close = getattr(parts, "aclose", None)
        if close is not None:
            await close()
    return response


async def _write_all(request: web.Request, response: web.StreamResponse, parts: AsyncIterator[bytes]) -> None:
    async for part in parts:
        try:
            async with asyncio.timeout(STUCK_AFTER_S):
                await response.write(part)
        except TimeoutError:
            if request.transport is not None:
                request.transport.abort()
            return
    with contextlib.suppress(ConnectionResetError):
        await response.write_eof()
