"""Read a call's body whole: within its size, within a time, and on another thread where it is long."""

from __future__ import annotations

import asyncio

from aiohttp import web

from supervisor.shell.front.body import ModelBody, UnreadableBodyError, read_body
from supervisor.shell.front.refusal import RefusedError

SILENCE_S = 60.0
SLOWEST_BYTES_S = 10_000
"""A body may take a minute, and longer by as much as it needs at this rate; one that drips is not waited for."""

LONG_BODY_BYTES = 2**20


async def read_call(request: web.Request, max_bytes: int) -> ModelBody:
    """The body and the model that it names. Raises RefusedError: too long, too slow, or not readable."""
    content = await _read_whole(request, max_bytes)
    content_type = request.headers.get("Content-Type", "application/json")
    try:
        if len(content) > LONG_BODY_BYTES:
            return await asyncio.to_thread(read_body, content, content_type)
        return read_body(content, content_type)
    except UnreadableBodyError as error:
        raise RefusedError(400, "invalid_body", f"The model cannot be read: {error}.") from error


async def _read_whole(request: web.Request, max_bytes: int) -> bytes:
    too_long = RefusedError(413, "body_too_large", f"The body is longer than {max_bytes} bytes (max_body).")
    if (request.content_length or 0) > max_bytes:
        raise too_long
    parts: list[bytes] = []
    size = 0
    began = asyncio.get_running_loop().time()
    while True:
        try:
            async with asyncio.timeout_at(began + SILENCE_S + size / SLOWEST_BYTES_S):
                part = await request.content.readany()
        except TimeoutError:
            raise RefusedError(408, "body_timeout", "The body comes too slowly, or not at all.") from None
        if not part:
            return b"".join(parts)
        parts.append(part)
        size += len(part)
        if size > max_bytes:
            raise too_long
