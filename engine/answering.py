"""Serve one chat or text completion: parse, decode, write; streamed or whole."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import UTC, datetime

from aiohttp import web

from engine.errors import EngineError
from engine.event_stream import EventStream
from engine.middlewares import ID_HEADER, REQUEST_ID, error_body
from engine.openai_answers import Answer, Kind
from engine.openai_wire import ChatCall, CompletionCall, Options, parse_chat, parse_completion
from engine.reading import Piece, Reading
from engine.request import Usage
from engine.service import Service
from engine.tool_calls import ToolCall

BODY_S = 60.0
"""A client has so long to send its body."""
QUIET_S = 5.0
"""A stream that has nothing to say for so long gets a comment, if decoding moved meanwhile."""
log = logging.getLogger("engine")


class Answering:
    """The two handlers; a client that leaves cancels its handler, and that its generation."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def chat(self, request: web.Request) -> web.StreamResponse:
        return await self._serve(request, "chat", parse_chat)

    async def completion(self, request: web.Request) -> web.StreamResponse:
        return await self._serve(request, "text", parse_completion)

    async def _serve(
        self, request: web.Request, kind: Kind, parse: Callable[[bytes], ChatCall | CompletionCall]
    ) -> web.StreamResponse:
        async with asyncio.timeout(BODY_S):
            body = await request.read()
        self._service.in_flight += 1
        try:
            call = await self._service.off_loop(parse, body)
            reading = await self._service.begin(call, request[REQUEST_ID])
            try:
                return await self._answer(request, reading, kind, call.options)
            finally:
                reading.close()
                _log(request[REQUEST_ID], reading.usage)
        finally:
            self._service.in_flight -= 1

    async def _answer(self, request: web.Request, reading: Reading, kind: Kind, options: Options) -> web.StreamResponse:
        prefix = "chatcmpl" if kind == "chat" else "cmpl"
        created = int(datetime.now(UTC).timestamp())
        answer = Answer(kind, f"{prefix}-{request[REQUEST_ID]}", created, self._service.model)
        if options.stream:
            return await self._stream(request, reading, answer, options)
        text, calls = "", tuple[ToolCall, ...]()
        while (piece := await reading.next()) is not None:
            text, calls = text + piece.text, calls + piece.calls
            if piece.finish:
                return web.json_response(answer.whole(text, piece.finish, reading.usage, calls))
        raise EngineError("decoding ended without a reason")

    async def _stream(
        self, request: web.Request, reading: Reading, answer: Answer, options: Options
    ) -> web.StreamResponse:
        events = EventStream(request, {ID_HEADER: request[REQUEST_ID]})
        try:
            piece = await self._next(reading, events)
            if (first := answer.first_chunk()) is not None:
                await events.event(first)
            called = 0
            while piece is not None:
                if piece.calls:
                    await events.event(answer.calls_chunk(piece.calls, called))
                    called += len(piece.calls)
                if piece.text or piece.finish:
                    await events.event(answer.chunk(piece.text, piece.finish))
                if piece.finish:
                    break
                piece = await self._next(reading, events)
            if options.include_usage:
                await events.event(answer.usage_chunk(reading.usage))
            await events.event("[DONE]")
        except EngineError as error:
            if not events.has_begun:
                raise  # there is still a status to tell it by
            await events.event(error_body(error)[1])
        return await events.end()

    async def _next(self, reading: Reading, events: EventStream) -> Piece | None:
        moved = self._service.last_movement()
        while True:
            try:
                async with asyncio.timeout(QUIET_S):
                    return await reading.next()
            except TimeoutError:
                # A comment counts as progress to whoever watches, so there must have been some.
                if self._service.last_movement() != moved:
                    moved = self._service.last_movement()
                    await events.comment("working")


def _log(request_id: str, usage: Usage) -> None:
    log.info(
        "request %s: prompt %d tokens, %d of them cached, fed in %.2f s; answer %d tokens in %.2f s, %d drafted",
        request_id,
        usage.prompt_tokens,
        usage.cached_tokens,
        usage.prefill_s,
        usage.completion_tokens,
        usage.decode_s,
        usage.accepted,
    )
