"""A response of server-sent events, written with a deadline."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from aiohttp import web

WRITE_S = 60.0
"""A client that takes nothing for so long is cut off."""


class EventStream:
    """Its head goes out with the first event or comment."""

    def __init__(self, request: web.Request, headers: dict[str, str]) -> None:
        self._request = request
        self._headers = {
            "Content-Type": "text/event-stream; charset=utf-8",
            "Cache-Control": "no-cache",
            "X-Accel-Buffering": "no",
            **headers,
        }
        self._response: web.StreamResponse | None = None

    @property
    def has_begun(self) -> bool:
        return self._response is not None

    async def event(self, value: dict[str, Any] | str) -> None:
        """One event, JSON unless it is a string. Raises ConnectionError or TimeoutError when the client is gone."""
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        await self._write(f"data: {text}\n\n")

    async def comment(self, text: str) -> None:
        """A line that clients skip, so that nobody takes a long prefill for a dead connection."""
        await self._write(f": {text}\n\n")

    async def end(self) -> web.StreamResponse:
        """End the body; returns the response for the handler to return."""
        response = self._response or await self._begin()
        async with asyncio.timeout(WRITE_S):
            await response.write_eof()
        return response

    async def _write(self, text: str) -> None:
        response = self._response or await self._begin()
        async with asyncio.timeout(WRITE_S):
            await response.write(text.encode())

    async def _begin(self) -> web.StreamResponse:
        self._response = web.StreamResponse(headers=self._headers)
        await self._response.prepare(self._request)
        return self._response
