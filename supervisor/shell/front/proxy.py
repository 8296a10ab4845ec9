"""Forward one call to its lane: wait for a turn, send it, pass the answer on; once more if the worker died in time."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import structlog
from aiohttp import web

from supervisor.shell.front import refusal as refusals
from supervisor.shell.front.attempt import Attempt, WorkerBrokeOffError
from supervisor.shell.front.client import Client
from supervisor.shell.front.gate import Gate, Mode
from supervisor.shell.front.refusal import RefusedError
from supervisor.shell.front.ticket import InterruptedAnswerError, Ticket
from supervisor.shell.front.views import Call, LaneFront
from supervisor.shell.tasks import Tasks

log = structlog.get_logger(__name__)

CLIENT_SHARE = 0.1
"""A stream that waited for its client for more than this share of its time says nothing of its worker."""


async def forward(request: web.Request, lane: LaneFront, call: Call) -> web.StreamResponse:
    """Answer a client's call through its lane. Raises RefusedError if the lane does not take it.

    Cancelled (the client has left), it ends the worker's connection at once.
    """
    ticket = lane.gate.enter(call.request_id, len(call.body.content), call.body.silent_tokens)
    return await _Forwarding(request, lane.gate, ticket, call).run()


class _Forwarding:
    """One call on its way."""

    def __init__(self, request: web.Request, gate: Gate, ticket: Ticket, call: Call) -> None:
        self._request = request
        self._gate = gate
        self._ticket = ticket
        self._call = call
        self._client = Client(request, call, ticket)
        self._is_failed = False
        self._is_cut = False

    async def run(self) -> web.StreamResponse:
        try:
            while True:
                response = await self._try()
                if response is not None:
                    return response
        except RefusedError as refusal:
            return await self._client.refuse(refusal)
        except ConnectionError:  # the client has left
            return self._client.abandoned()
        except Exception:
            self._is_failed = True
            if not self._client.has_begun:
                raise
            log.exception("answer_failed", request_id=self._call.request_id)
            return await self._client.refuse(refusals.broken_off("freshlane met an error of its own"))
        finally:
            self._gate.leave(self._ticket, is_failed=self._is_failed, is_cut=self._is_cut)

    async def _try(self) -> web.StreamResponse | None:
        """Send it once; None if it is to be sent again."""
        await self._take_turn()
        upstream = self._ticket.upstream
        if upstream is None:
            raise RuntimeError("admitted to no worker")
        attempt = Attempt(
            self._request, self._call, upstream, lambda tokens: self._gate.note_progress(self._ticket, tokens)
        )
        try:
            async with self._ticket.answering():
                async with self._comments():
                    await attempt.begin()
                self._ticket.has_token = self._ticket.has_token or attempt.has_token
                return await self._pass_on(attempt)
        except WorkerBrokeOffError as broken:
            return await self._after_break(broken)
        except InterruptedAnswerError as interruption:
            return await self._after_interruption(interruption.refusal)
        finally:
            attempt.close()

    async def _pass_on(self, attempt: Attempt) -> web.StreamResponse:
        try:
            response = await attempt.forward(self._client)
        finally:
            self._ticket.has_token = self._ticket.has_token or attempt.has_token
        if attempt.count.is_complete and self._client.waited_s <= CLIENT_SHARE * attempt.count.lasted_s:
            self._gate.note_stream(self._ticket, attempt.count, self._call.model)
        return response

    async def _after_break(self, broken: WorkerBrokeOffError) -> web.StreamResponse | None:
        if not self._ticket.has_token:
            self._gate.send_again(self._ticket, was_reached=broken.was_reached)
            return None
        self._is_failed = True
        if broken.is_told:
            return await self._client.break_off()
        return await self._client.refuse(refusals.broken_off(str(broken)))

    async def _after_interruption(self, refusal: RefusedError) -> web.StreamResponse | None:
        if self._ticket.can_be_sent_again and self._gate.mode is not Mode.REFUSING:
            self._gate.send_again(self._ticket, is_cut=True)
            return None
        self._is_cut = refusal.code == refusals.CUT
        self._is_failed = not self._is_cut
        return await self._client.refuse(refusal)

    async def _take_turn(self) -> None:
        """Wait until the gate lets it go. Raises RefusedError."""
        while not await self._ticket.admitted(self._silence_s):
            await self._client.comment(f"waits: {self._gate.waits_for}")

    @property
    def _silence_s(self) -> float | None:
        return self._gate.terms.comments_after_s if self._call.wants_stream else None

    @asynccontextmanager
    async def _comments(self) -> AsyncIterator[None]:
        """Meanwhile a stream's client that hears nothing gets comments. Most answers begin before the first is due."""
        silence_s = self._silence_s
        if silence_s is None:
            yield
            return
        tasks = Tasks()
        first = asyncio.get_running_loop().call_later(
            silence_s, lambda: tasks.start(self._comment_each(silence_s), "comments")
        )
        try:
            yield
        finally:
            first.cancel()
            await tasks.close()

    async def _comment_each(self, silence_s: float) -> None:
        with contextlib.suppress(ConnectionError):  # the client has left, and its request ends by that
            while True:
                await self._client.comment("waits for the first token")
                await asyncio.sleep(silence_s)
