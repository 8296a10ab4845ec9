"""The client's side of one answer: begun late, written in whole events, and never ended cleanly unless complete."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager

from aiohttp import web
from multidict import CIMultiDict

from supervisor.shell.front.refusal import RefusedError
from supervisor.shell.front.ticket import Ticket
from supervisor.shell.front.views import Call

LAST_WORDS_S = 5.0
"""How long a client may take to read what was written before its connection was ended."""


class Client:
    """Who waits for the answer to a call."""

    def __init__(self, request: web.Request, call: Call, ticket: Ticket) -> None:
        self._request = request
        self._call = call
        self._ticket = ticket
        self._stream: web.StreamResponse | None = None
        self.waited_s = 0.0
        """For the client, in all writes: what it did not read."""

    @property
    def has_begun(self) -> bool:
        """Whether a status was sent."""
        return self._stream is not None

    async def comment(self, text: str) -> None:
        """Tell a stream's client that it is not forgotten; one whose buffer is full knows already."""
        if self._ticket.writing_since is None:
            if self._stream is None:
                headers = CIMultiDict({"Content-Type": "text/event-stream", "Cache-Control": "no-cache"})
                headers["X-Request-Id"] = self._call.request_id
                await self.begin(200, None, headers)
            await self.write(b": freshlane " + text.replace("\n", " ").encode() + b"\n\n")

    async def begin(self, status: int, reason: str | None, headers: CIMultiDict[str]) -> None:
        """Send the status, unless one was sent; its body follows in pieces."""
        if self._stream is None:
            self._stream = web.StreamResponse(status=status, reason=reason, headers=headers)
            await self._stream.prepare(self._request)

    async def write(self, content: bytes) -> None:
        """Send bytes; waits while the client does not read. Raises ConnectionError if it has left."""
        if self._stream:
            with self._writing():
                await self._stream.write(content)

    async def end(self) -> web.StreamResponse:
        """The answer is complete."""
        stream = self._begun()
        with self._writing():
            await stream.write_eof()
        return stream

    async def answer(
        self, status: int, reason: str | None, headers: CIMultiDict[str], body: bytes
    ) -> web.StreamResponse:
        """Send a whole answer."""
        response = self._stream = web.Response(status=status, reason=reason, headers=headers, body=body)
        with self._writing():
            await response.prepare(self._request)
            await response.write_eof()
        return response

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Meanwhile the client may turn out to have stopped reading; what ends the block for that still sees it."""
        began = self._ticket.writing_since = time.monotonic()
        yield
        self._ticket.writing_since = None
        self.waited_s += time.monotonic() - began

    async def refuse(self, refusal: RefusedError) -> web.StreamResponse:
        """Send an error of our own: as the answer, or as the last event of one that has begun."""
        if self._stream:
            return await self.break_off(refusal.event)
        headers = CIMultiDict({**refusal.headers, "X-Request-Id": self._call.request_id})
        headers["Content-Type"] = "application/json"
        return await self.answer(refusal.status, None, headers, refusal.body)

    async def break_off(self, last: bytes = b"") -> web.StreamResponse:
        """End an answer that is not complete, so that nobody can take it for a complete one."""
        stream, transport = self._begun(), self._request.transport
        stream.force_close()
        if transport is None:
            return stream
        if self._ticket.is_stalled or not await self._said(stream, last):
            transport.abort()
            return stream
        transport.close()  # without the last chunk, which would make it look whole
        asyncio.get_running_loop().call_later(LAST_WORDS_S, transport.abort)
        return stream

    async def _said(self, stream: web.StreamResponse, last: bytes) -> bool:
        if not last or stream.content_type != "text/event-stream":
            return True
        try:
            async with asyncio.timeout(LAST_WORDS_S):
                await stream.write(last)
        except (TimeoutError, ConnectionError):
            return False
        return True

    def abandoned(self) -> web.StreamResponse:
        """What is left of an answer whose client has left."""
        return self._stream or web.Response(status=499)

    def _begun(self) -> web.StreamResponse:
        if self._stream is None:
            raise RuntimeError("an answer that has not begun cannot end")
        return self._stream
