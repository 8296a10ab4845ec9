"""Clients that stream one answer after the other, sometimes leave, and account for every byte."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from dataclasses import dataclass, field

import aiohttp

from bench.soak_lanes import SoakLane
from tests.fakes import expected_text
from tests.scenarios.streaming_clients import Answer, read

LENGTHS = (8, 8, 8, 8, 16, 16, 32, 64, 120)
LEAVING = 0.03
"""Share of requests whose client leaves before the end."""
LONGEST_SILENCE_S = 120.0


@dataclass(frozen=True)
class Failure:
    """An answer that is not whole; times are monotonic seconds."""

    lane: str
    request_id: str
    began: float
    ended: float
    status: int
    error: str
    text_is_right: bool
    """What came before the error is how the whole answer begins."""

    @property
    def has_error_event(self) -> bool:
        """The stream had begun, and an error event told its client that it failed."""
        return self.status == 200 and "freshlane" in self.error and self.text_is_right

    @property
    def is_poison(self) -> bool:
        """Refused because its workers died twice."""
        return "request_poison" in self.error


@dataclass
class SoakClients:
    """All clients of all lanes."""

    url: str
    lanes: dict[str, SoakLane]
    seed: int
    counts: Counter[str] = field(default_factory=Counter)
    by_lane: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)
    whole: dict[str, dict[str, str]] = field(default_factory=dict)
    """By lane and request id, the sha256 of what its client got."""
    inflight: int = 0
    longest_s: float = 0.0
    _stopping: asyncio.Event = field(default_factory=asyncio.Event)
    _going: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> None:
        """Stream until `stop`, each client in its own rhythm."""
        self._going.set()
        timeout = aiohttp.ClientTimeout(total=None, sock_read=LONGEST_SILENCE_S)
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session, asyncio.TaskGroup() as group:
            for lane in self.lanes.values():
                self.whole[lane.name] = {}
                for number in range(lane.clients):
                    dice = random.Random(f"{self.seed}:{lane.name}:{number}")
                    group.create_task(self._stream_on(session, lane, number, dice))

    def stop(self) -> None:
        """Let each finish the stream it has."""
        self._stopping.set()
        self._going.set()

    def pause(self) -> None:
        """No new requests until `go_on`."""
        self._going.clear()

    def go_on(self) -> None:
        self._going.set()

    async def _stream_on(
        self, session: aiohttp.ClientSession, lane: SoakLane, client: int, dice: random.Random
    ) -> None:
        number = 0
        while not self._stopping.is_set():
            await self._going.wait()
            number += 1
            request_id = f"{lane.name}-{client}-{number}"
            length, leaves = dice.choice(LENGTHS), dice.random() < LEAVING
            self.inflight += 1
            try:
                await self._one(session, lane, request_id, length, leaves_after=dice.randrange(3) if leaves else None)
            finally:
                self.inflight -= 1
            if lane.longest_pause_s:
                await self._rest(dice.uniform(0, lane.longest_pause_s))

    async def _rest(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self._stopping.wait(), seconds)
        except TimeoutError:
            return

    async def _one(
        self, session: aiohttp.ClientSession, lane: SoakLane, request_id: str, length: int, leaves_after: int | None
    ) -> None:
        self.counts["requests"] += 1
        self.by_lane[lane.name] += 1
        answer = Answer(request_id, expected=expected_text(request_id, length))
        body = {
            "model": lane.name,
            "stream": True,
            "max_tokens": length,
            "messages": [{"role": "user", "content": request_id}],
        }
        began = time.monotonic()
        content = bytearray()
        try:
            headers = {"X-Request-Id": request_id}
            async with session.post(f"{self.url}/v1/chat/completions", json=body, headers=headers) as response:
                answer.status = response.status
                async for piece in response.content.iter_any():
                    content += piece
                    if leaves_after is not None and content.count(b"\n\n") > leaves_after:
                        self.counts["left"] += 1
                        return  # the block closes the connection, since there is more to read
        except (aiohttp.ClientError, TimeoutError) as error:
            answer.error = repr(error)
        self._account(lane, answer, bytes(content), began)

    def _account(self, lane: SoakLane, answer: Answer, content: bytes, began: float) -> None:
        ended = time.monotonic()
        transport_error = answer.error
        if answer.status == 200:
            read(answer, content)
        elif not transport_error:
            answer.error = content.decode(errors="replace")
        self.longest_s = max(self.longest_s, ended - began)
        if answer.is_whole:
            self.counts["whole"] += 1
            self.whole[lane.name][answer.request_id] = answer.sha256
            return
        self.counts["failed"] += 1
        is_right = answer.expected.startswith(answer.text)
        error = answer.error or f"ended after {len(answer.text)} of {len(answer.expected)} characters"
        self.failures.append(
            Failure(lane.name, answer.request_id, began, ended, answer.status, error[:500], text_is_right=is_right)
        )
