"""Serve one chat or text completion: parse, decode, write; streamed or whole."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from aiohttp import web

from engine.choices import Choices
from engine.errors import EngineError
from engine.event_stream import EventStream
from engine.middlewares import ID_HEADER, REQUEST_ID, error_body
from engine.openai_answers import Answer, Kind, Logprobs
from engine.openai_wire import ChatCall, CompletionCall, parse_chat, parse_completion
from engine.options import Options
from engine.reading import Piece
from engine.request import TokenScore, Usage
from engine.scores_wire import shaper
from engine.service import Service

BODY_S = 60.0
"""A client has so long to send its body."""
QUIET_S = 5.0
"""A stream that has nothing to say for so long gets a comment, if decoding moved meanwhile."""
Shape = Callable[[Sequence[TokenScore]], Logprobs]
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
            choices = await self._service.begin(call, request[REQUEST_ID])
            try:
                return await self._answer(request, choices, kind, call.options)
            finally:
                choices.close()
                _log(request[REQUEST_ID], choices.usage)
        finally:
            self._service.in_flight -= 1

    async def _answer(self, request: web.Request, choices: Choices, kind: Kind, options: Options) -> web.StreamResponse:
        prefix = "chatcmpl" if kind == "chat" else "cmpl"
        created = int(datetime.now(UTC).timestamp())
        answer = Answer(kind, f"{prefix}-{request[REQUEST_ID]}", created, self._service.model)
        bytes_of = self._service.bytes_of
        shapers = [shaper(kind, options.top_logprobs, bytes_of) for _ in range(options.choices)]
        if options.stream:
            return await self._stream(request, choices, answer, options, shapers)
        collected = [Piece("") for _ in range(options.choices)]
        while (arrived := await choices.next()) is not None:
            index, piece = arrived
            collected[index] = collected[index].plus(piece)
        made = []
        for index, (piece, shape) in enumerate(zip(collected, shapers, strict=True)):
            if piece.finish is None:
                raise EngineError("decoding ended without a reason")
            scores = shape(piece.scores)
            made.append(
                answer.choice(index, piece.text, piece.finish, piece.calls, reasoning=piece.reasoning, logprobs=scores)
            )
        return web.json_response(answer.whole(made, choices.usage))

    async def _stream(
        self, request: web.Request, choices: Choices, answer: Answer, options: Options, shapers: list[Shape]
    ) -> web.StreamResponse:
        events = EventStream(request, {ID_HEADER: request[REQUEST_ID]})
        called: dict[int, int] = {}
        try:
            while (arrived := await self._next(choices, events)) is not None:
                index, piece = arrived
                if index not in called:
                    called[index] = 0
                    if (first := answer.first_chunk(index)) is not None:
                        await events.event(first)
                if piece.calls:
                    await events.event(answer.calls_chunk(index, piece.calls, called[index]))
                    called[index] += len(piece.calls)
                if piece.text or piece.reasoning or piece.scores or piece.finish:
                    scores = shapers[index](piece.scores)
                    chunk = answer.chunk(index, piece.text, piece.finish, reasoning=piece.reasoning, logprobs=scores)
                    await events.event(chunk)
            if options.include_usage:
                await events.event(answer.usage_chunk(choices.usage))
            await events.event("[DONE]")
        except EngineError as error:
            if not events.has_begun:
                raise  # there is still a status to tell it by
            await events.event(error_body(error)[1])
        return await events.end()

    async def _next(self, choices: Choices, events: EventStream) -> tuple[int, Piece] | None:
        moved = self._service.last_movement()
        while True:
            try:
                async with asyncio.timeout(QUIET_S):
                    return await choices.next()
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
