"""One try at a call: it is sent to a worker, and the answer is passed on."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Callable

import aiohttp
from aiohttp import web
from yarl import URL

from supervisor.shell.front.client import Client
from supervisor.shell.front.headers import for_client, for_worker
from supervisor.shell.front.meaning import EventFacts, Meaning, facts_of, tokens_of_answer
from supervisor.shell.front.sse import EndlessEventError, EventSplitter
from supervisor.shell.front.stream_count import StreamCount
from supervisor.shell.front.upstream import Upstream
from supervisor.shell.front.views import Call

MAX_KEPT_BYTES = 8 * 2**20
"""An answer that is no stream is kept whole up to this size, so that its worker may die before it is complete."""

AFTER_LAST_EVENT_S = 2.0
"""How long a worker may keep the connection open after its terminal event."""

LARGE_BODY_BYTES = 2**20

_OWN_HEADERS = ("User-Agent", "Accept", "Accept-Encoding", "Content-Type")


class WorkerBrokeOffError(Exception):
    """The answer ended before it was complete.

    ``is_told``: the worker has sent an error event itself. ``was_reached``: it may have seen the request.
    """

    def __init__(self, reason: str, *, is_told: bool = False, was_reached: bool = True) -> None:
        super().__init__(reason)
        self.was_reached = was_reached
        self.is_told = is_told


class Attempt:
    """The worker's side of one try. ``progressed`` is told of bytes, with the tokens they bring."""

    def __init__(self, request: web.Request, call: Call, upstream: Upstream, progressed: Callable[[int], None]) -> None:
        self.has_token = False
        """A token-bearing event, or a part of an answer that is no stream, is about to be forwarded."""
        self.count = StreamCount()
        self._request = request
        self._call = call
        self._upstream = upstream
        self._progressed = progressed
        self._answer: aiohttp.ClientResponse | None = None
        self._splitter = EventSplitter()
        self._kept: list[bytes] = []
        self._is_at_end = False
        self._is_complete = False
        self._is_error_told = False
        self._tokens = 0

    # ---- first: until there is something to forward ----

    async def begin(self) -> None:
        """Send the call and wait for the first event with a token, for a comment, or for an answer that is no stream.

        Raises WorkerBrokeOffError.
        """
        upstream, request = self._upstream, self._request
        body = self._call.body.naming(upstream.served_model(self._call.model))
        headers = for_worker(request.headers, upstream.headers, self._call.request_id, is_plain=self._call.wants_stream)
        url = URL(upstream.url + request.path_qs, encoded=True)
        try:
            self._answer = await upstream.session.request(
                request.method,
                url,
                data=_sendable(body),
                headers=headers,
                skip_auto_headers=_OWN_HEADERS,
                allow_redirects=False,
            )
        except aiohttp.ClientConnectorError as error:
            raise WorkerBrokeOffError(str(error), was_reached=False) from error
        except (aiohttp.ClientError, OSError) as error:
            raise WorkerBrokeOffError(str(error) or type(error).__name__) from error
        if self._is_event_stream:
            await self._read_until_worth_telling()
        else:
            await self._read_whole()

    async def _read_until_worth_telling(self) -> None:
        while not self._is_at_end:
            events = await self._read_events()
            self._kept += events
            if self.has_token or self._is_complete or any(event.startswith(b":") for event in events):
                return
        raise WorkerBrokeOffError("the stream ended before its first token")

    async def _read_whole(self) -> None:
        size = 0
        while not self._is_at_end and size <= MAX_KEPT_BYTES:
            chunk = await self._read()
            if chunk:
                self._progressed(0)
            self._kept.append(chunk)
            size += len(chunk)
        if self._is_at_end:
            self._check_whole()

    def _check_whole(self) -> None:
        """JSON that nothing delimits may have lost its end with its worker, and an empty one has."""
        answer = self._answered
        if answer.status != 200 or "json" not in answer.content_type or "Content-Encoding" in answer.headers:
            return
        content = b"".join(self._kept)
        is_delimited = "Content-Length" in answer.headers or "Transfer-Encoding" in answer.headers
        if not content or not (is_delimited or _is_json(content)):
            raise WorkerBrokeOffError("it answered 200, and then not all of the answer")

    # ---- then: forward ----

    async def forward(self, client: Client) -> web.StreamResponse:
        """Pass on what has come and what follows. Raises WorkerBrokeOffError."""
        answer = self._answered
        headers = for_client(answer.headers, self._call.request_id)
        if self._is_event_stream:
            await client.begin(answer.status, answer.reason, headers)
            return await self._forward_events(client)
        self.has_token = True
        content = b"".join(self._kept)
        self._kept.clear()
        if client.has_begun:
            return await client.break_off(_as_error_event(answer.status, content))
        if self._is_at_end:
            self._progressed(tokens_of_answer(content))
            return await client.answer(answer.status, answer.reason, headers, content)
        await client.begin(answer.status, answer.reason, headers)
        await client.write(content)
        while not self._is_at_end:
            await client.write(await self._read())
            self._progressed(0)
        return await client.end()

    async def _forward_events(self, client: Client) -> web.StreamResponse:
        events, self._kept = self._kept, []
        while True:
            if events:
                await client.write(events[0] if len(events) == 1 else b"".join(events))
            if self._is_at_end:
                break
            events = await self._read_events()
        if not self._is_complete:
            raise WorkerBrokeOffError("the stream ended without its terminal event", is_told=self._is_error_told)
        self.count.is_complete = not self._is_error_told
        return await client.end()

    def close(self) -> None:
        """End the connection to the worker; it stops generating."""
        if self._answer:
            self._answer.close()

    # ---- reading ----

    @property
    def _answered(self) -> aiohttp.ClientResponse:
        if self._answer is None:
            raise RuntimeError("nothing was answered yet")
        return self._answer

    @property
    def _is_event_stream(self) -> bool:
        answer = self._answered
        encoding = answer.headers.get("Content-Encoding", "identity")
        return answer.status == 200 and answer.content_type == "text/event-stream" and encoding == "identity"

    async def _read(self) -> bytes:
        """What has come; empty at the end."""
        try:
            if self._is_complete:
                async with asyncio.timeout(AFTER_LAST_EVENT_S):
                    chunk = await self._answered.content.readany()
            else:
                chunk = await self._answered.content.readany()
        except (aiohttp.ClientError, OSError) as error:
            if not self._is_complete:
                raise WorkerBrokeOffError(str(error) or type(error).__name__) from error
            chunk = b""
        self._is_at_end = not chunk
        return chunk

    async def _read_events(self) -> list[bytes]:
        """The next whole events; empty at the end, or if none has ended yet."""
        chunk = await self._read()
        try:
            events = self._splitter.feed(chunk)
        except EndlessEventError as error:
            raise WorkerBrokeOffError(str(error)) from error
        rest = self._splitter.rest
        if self._is_at_end and rest and (self._is_complete or facts_of(rest).meaning is Meaning.TERMINAL):
            events.append(rest)  # its last empty line was left out; strict clients ignore it, all others understand
        before, facts = self._tokens, [facts_of(event) for event in events]
        for fact in facts:
            self._note(fact)
        self.count.read(sum(fact.meaning is Meaning.TOKENS for fact in facts))
        # Headers and an opening event are promises, which a worker that hangs may still make to each newcomer.
        if any(fact.meaning is not Meaning.QUIET for fact in facts) or (chunk and not facts):
            self._progressed(self._tokens - before)
        return events

    def _note(self, facts: EventFacts) -> None:
        match facts.meaning:
            case Meaning.TOKENS:
                self.has_token = True
                self._tokens += 1
            case Meaning.TERMINAL:
                self._is_complete = True
            case Meaning.ERROR:
                self._is_error_told = self.has_token = True
            case _:
                pass
        if facts.generated_tokens is not None:
            self._tokens = self.count.told = facts.generated_tokens


def _sendable(body: bytes) -> bytes | io.BytesIO:
    """A large body goes out in pieces, so that other answers go on meanwhile."""
    return io.BytesIO(body) if len(body) >= LARGE_BODY_BYTES else body


def _is_json(content: bytes) -> bool:
    try:
        json.loads(content)
    except RecursionError:
        return True  # whole or not, nobody can tell
    except ValueError:
        return False
    return True


def _as_error_event(status: int, content: bytes) -> bytes:
    """A worker's refusal for a client that has been told 200 already."""
    lines = content.splitlines() or [b'{"error": {"message": "the worker answered %d", "code": %d}}' % (status, status)]
    return b"".join(b"data: " + line + b"\n" for line in lines) + b"\n"
