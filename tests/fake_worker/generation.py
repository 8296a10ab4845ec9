"""One generation: its faults, its pace, and the bytes that it sends."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.fake_worker import dialects
from tests.fake_worker.asks import Ask, plan
from tests.fake_worker.knobs import LiveKnobs
from tests.fake_worker.prefix import PrefixCache
from tests.fake_worker.shapes import SHAPES, Shape, ToolCall, event
from tests.fake_worker.speed import Speed
from tests.fake_worker.tally import Tally
from tests.fake_worker.wire import Answer, GoneError, Refused

CATCH_UP_S = 0.5
COMMENT = b": keep-alive\n\n"


class Ended(Exception):  # noqa: N818
    """A fault has ended the answer early."""


class CrashedError(Exception):
    """The process is to die here."""


@dataclass
class Tape:
    """What has been sent of one answer."""

    digest: Any = field(default_factory=hashlib.sha256)
    bytes: int = 0
    tokens: int = 0
    complete: bool = False


class Generation:
    def __init__(
        self, ask: Ask, answer: Answer, *, identity: str, mode: str, knobs: LiveKnobs, speed: Speed, tally: Tally
    ) -> None:
        self._ask = ask
        self._answer = answer
        self._identity = identity
        self._mode = mode
        self._knobs = knobs
        self._speed = speed
        self._tally = tally
        self._plan = plan(ask, knobs())
        self._finish = "error" if mode == "finish_error" else self._plan.finish
        self._shape = self._new_shape()
        self._cached = 0
        self.tape = Tape()

    async def run(self, cache: PrefixCache) -> None:
        """GoneError when the client has left, Refused for an error answer, CrashedError; else the answer is sent."""
        if await self._failed_at_once():
            return
        if self._begins_early():
            await self._begin_stream()
        await self._prefill(cache)
        try:
            await (self._stream() if self._ask.stream else self._whole())
        except Ended:
            return
        self.tape.complete = True

    async def _failed_at_once(self) -> bool:
        answer, mode = self._answer, self._mode
        if mode == "crash" and self._knobs().crash_tokens == 0 and not self._begins_early():
            raise CrashedError
        if mode in ("500", "429"):
            answer.extra_headers |= {"retry-after": "1"} if mode == "429" else {}
            raise Refused(int(mode), "The worker fails, as it was told to")
        if mode == "reset":
            answer.reset()
            raise GoneError
        if mode == "empty_200":
            await answer.whole(200, b"", self._content_type)
        elif mode == "headers_then_nothing":
            answer.begin(200, self._content_type)
            await answer.wait_for_goodbye()
        elif mode == "hang":
            await answer.wait_for_goodbye()
        return mode in ("empty_200", "headers_then_nothing", "hang")

    @property
    def _content_type(self) -> str:
        return "text/event-stream; charset=utf-8" if self._ask.stream else "application/json"

    def _begins_early(self) -> bool:
        return self._ask.stream and (self._knobs().early_headers or self._knobs().comments_every > 0)

    # --- prefill ---

    async def _prefill(self, cache: PrefixCache) -> None:
        ask, knobs, tally = self._ask, self._knobs(), self._tally
        if knobs.cached_tokens:
            self._cached = min(cache.reuse(ask.prompt), ask.prompt_tokens - 1)
        tally.prompt_tokens += ask.prompt_tokens
        tally.cached_tokens += self._cached
        if not knobs.prefill_tok_s:
            return
        seconds = (ask.prompt_tokens - self._cached) / (knobs.prefill_tok_s * self._speed.host_factor())
        tally.prefilling += 1
        try:
            await self._pass(seconds, knobs.comments_every)
        finally:
            tally.prefilling -= 1
        tally.prefill_seconds += seconds

    async def _pass(self, seconds: float, comments_every: float) -> None:
        """Lets time pass, with comments to the client if asked for."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            await self._pause(min(left, comments_every or left, dialects.PROGRESS_EVERY_S))
            dialects.tell_prompt(self._knobs(), 1 - max(0.0, end - time.monotonic()) / seconds, self._ask.prompt_tokens)
            if comments_every and self._ask.stream and not self._answer.gone and time.monotonic() < end:
                await self._write(COMMENT)

    # --- decoding ---

    def _groups(self) -> Iterator[tuple[list[str], bool]]:
        return self._plan.groups(max(1, self._knobs().chunk_tokens), self._knobs().reasoning_tokens)

    async def _paced(self) -> AsyncIterator[tuple[str, bool]]:
        """The texts of the answer, each group of tokens at its deadline on the monotonic clock."""
        tally, speed, context = self._tally, self._speed, self._ask.prompt_tokens
        luck = speed.draw_luck() * speed.model_factor(self._ask.model)
        tally.rates.append(speed.rate(tally.served, luck, context))
        tally.decoding += 1
        deadline = before = time.monotonic()
        try:
            for group, reasoning in self._groups():
                deadline += len(group) / speed.rate(tally.served, luck, context)
                deadline = max(deadline, time.monotonic() - CATCH_UP_S)  # no burst after the process was stopped
                await self._pause(deadline - time.monotonic())
                now = time.monotonic()
                context += len(group)
                self.tape.tokens += len(group)
                tally.count_tokens(context, len(group), now - before)
                before = now
                yield "".join(group), reasoning
                await self._late_fault()
        finally:
            tally.decoding -= 1

    async def _pause(self, seconds: float) -> None:
        if self._knobs().keep_generating:
            await asyncio.sleep(max(0.0, seconds))
            return
        await self._answer.pause(seconds)
        if self._answer.gone:
            raise GoneError

    async def _late_fault(self) -> None:
        knobs, mode, sent = self._knobs(), self._mode, self.tape.tokens
        if mode == "crash" and sent >= knobs.crash_tokens:
            raise CrashedError
        if mode not in ("no_done", "cut", "error_event", "stall") or sent < knobs.mode_tokens:
            return
        if mode == "stall":
            await self._answer.wait_for_goodbye()
            raise GoneError
        if mode == "cut" or not self._ask.stream:
            self._answer.reset()
            raise GoneError
        if mode == "error_event":
            await self._write(event(Refused(500, "The worker fails midway, as it was told to").body))
        await self._answer.finish()
        raise Ended

    # --- what is sent ---

    async def _stream(self) -> None:
        text: list[str] = []
        if self._mode == "crash" and self._knobs().crash_tokens == 0:
            raise CrashedError
        async for part, reasoning in self._paced():
            if not self._answer.status:
                await self._begin_stream()
            text += [] if reasoning else [part]
            await self._write(self._shape.delta(part, reasoning))
        await self._write(self._shape.closing("".join(text), self._finish, self._told_usage()))
        await self._answer.finish()

    async def _whole(self) -> None:
        texts: dict[bool, list[str]] = {False: [], True: []}
        async for part, reasoning in self._paced():
            texts[reasoning].append(part)
        if self._answer.gone:
            raise GoneError
        body = self._shape.whole("".join(texts[False]), "".join(texts[True]), self._finish, self._usage())
        encoded = self._shape.encode(body)
        self._note(encoded)
        await self._answer.whole(200, encoded, close=self._knobs().framing == "close")

    async def _begin_stream(self) -> None:
        framing = self._knobs().framing
        self._answer.begin(200, self._content_type, framing, self._length() if framing == "length" else None)
        await self._write(self._shape.opening())

    async def _write(self, part: bytes) -> None:
        if not part or (self._answer.gone and self._knobs().keep_generating):
            return
        self._note(part)
        if self._knobs().split_writes:
            await self._answer.send(part[: len(part) // 2])
            await asyncio.sleep(0)
            part = part[len(part) // 2 :]
        await self._answer.send(part)

    def _note(self, part: bytes) -> None:
        self.tape.digest.update(part)
        self.tape.bytes += len(part)

    def _new_shape(self) -> Shape:
        knobs = self._knobs()
        model = self._ask.model or knobs.model
        if self._ask.tool:
            return ToolCall(self._identity, model, self._ask.tool)
        return SHAPES[self._ask.kind](self._identity, model, knobs.reasoning_field)

    def _length(self) -> int:
        """The size of the whole stream, by composing it once beforehand."""
        shape, text, size = self._new_shape(), [], 0
        size += len(shape.opening())
        for group, reasoning in self._groups():
            size += len(shape.delta("".join(group), reasoning))
            text += [] if reasoning else group
        return size + len(shape.closing("".join(text), self._finish, self._told_usage()))

    def _told_usage(self) -> dict[str, Any] | None:
        choice = self._knobs().usage
        asked = self._ask.include_usage or self._ask.kind == "responses"
        return self._usage() if choice == "always" or (choice == "asked" and asked) else None

    def _usage(self) -> dict[str, Any]:
        reasoning = min(self._knobs().reasoning_tokens, self._plan.count)
        return self._shape.usage(self._ask.prompt_tokens, self._cached, self._plan.count, reasoning)
