"""Clients that stream one answer after the other, sometimes leave, and account for every byte."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import aiohttp

from bench.soak_digests import Whole
from bench.soak_failures import Failure
from bench.soak_lanes import SoakLane
from tests.scenarios.streaming_clients import Answer, stream

LENGTHS = (8, 8, 8, 8, 16, 16, 32, 64, 120)
LEAVING = 0.03
"""Share of requests whose client leaves before the end."""
LONGEST_SILENCE_S = 120.0


@dataclass
class SoakClients:
    """All clients of all lanes."""

    url: str
    lanes: dict[str, SoakLane]
    seed: int
    counts: Counter[str] = field(default_factory=Counter)
    by_lane: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)
    whole: dict[str, dict[str, Whole]] = field(default_factory=dict)
    """By lane and request id."""
    inflight: int = 0
    longest_s: float = 0.0
    _stopping: asyncio.Event = field(default_factory=asyncio.Event)
    _going: dict[str, asyncio.Event] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._going = {name: asyncio.Event() for name in self.lanes}
        self._go_on()

    async def run(self) -> None:
        """Stream until `stop`, each client in its own rhythm."""
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
        self._go_on()

    @contextmanager
    def paused(self, *, all_but: str | None = None) -> Iterator[None]:
        """No new requests within the block, but to this lane."""
        for name, going in self._going.items():
            if name != all_but and not self._stopping.is_set():
                going.clear()
        try:
            yield
        finally:
            self._go_on()

    def _go_on(self) -> None:
        for going in self._going.values():
            going.set()

    async def _stream_on(
        self, session: aiohttp.ClientSession, lane: SoakLane, client: int, dice: random.Random
    ) -> None:
        number = 0
        while not self._stopping.is_set():
            await self._going[lane.name].wait()
            number += 1
            request_id = f"{lane.name}-{client}-{number}"
            length, leaves = dice.choice(LENGTHS), dice.random() < LEAVING
            leaves_after = dice.randrange(3) if leaves else None
            self.counts["requests"] += 1
            self.by_lane[lane.name] += 1
            self.inflight += 1
            try:
                answer = await stream(session, self.url, lane.name, request_id, length, leaves_after=leaves_after)
            finally:
                self.inflight -= 1
            self._account(lane, answer)
            if lane.longest_pause_s:
                await self._rest(dice.uniform(0, lane.longest_pause_s))

    async def _rest(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self._stopping.wait(), seconds)
        except TimeoutError:
            return

    def _account(self, lane: SoakLane, answer: Answer) -> None:
        self.longest_s = max(self.longest_s, answer.took_s)
        if answer.is_left:
            self.counts["left"] += 1
            return
        if answer.is_whole:
            self.counts["whole"] += 1
            self.whole[lane.name][answer.request_id] = Whole(answer.sha256, answer.began + answer.took_s)
            return
        self.counts["failed"] += 1
        self.failures.append(
            Failure(
                lane.name,
                answer.request_id,
                answer.began,
                ended=answer.began + answer.took_s,
                status=answer.status,
                error=(answer.error or f"ended after {len(answer.text)} of {len(answer.expected)} characters")[:500],
                text_is_right=answer.expected.startswith(answer.text),
            )
        )
