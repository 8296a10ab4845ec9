"""What one worker says of itself: the lines of its log as they come, and its endpoint when it is asked.

Nothing here is on a client's way, and nothing waits for it: a worker that says nothing is none the worse.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

import aiohttp

from supervisor.core.speed.own_words import OwnWords
from supervisor.presets import Preset, Stats
from supervisor.readings.engine import engine_stats
from supervisor.readings.reading import Reading, between, is_another_life
from supervisor.readings.recollection import Recollection
from supervisor.shell.front.upstream import Upstream
from supervisor.shell.tasks import Tasks
from supervisor.shell.worker.output import Output

OWN_STATS = Stats("/stats", engine_stats)
"""What the worker protocol has, and so any worker may."""
ASK_TIMEOUT_S = 1.0
LONGEST_ANSWER_BYTES = 4_000_000
NOT_ANSWERED_YET = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Statuses that say nothing of whether there is such an endpoint."""
READ_PAUSE_S = 0.05
"""Between two looks at the log: a worker that floods it is skipped through, not read whole."""
LONGEST_LINE_BYTES = 8192
LAST_LINE_S = 0.3
"""So much later than the end of its answer may the line about a canary come."""


@dataclass
class AboutCanary:
    """What a worker told of one canary."""

    reading: Reading | None = None
    is_void: bool = False
    """Set by who sent it: it failed, and is no run to compare others with."""

    @property
    def tokens_per_step(self) -> float | None:
        """None where it does not speculate, or does not tell."""
        return self.reading.tokens_per_step if self.reading else None


class SelfReport:
    """One worker's. ``preset``: the server that it is, None where that is not known."""

    def __init__(self, upstream: Upstream, preset: Preset | None, now: Callable[[], float]) -> None:
        self.is_restarted = False
        """Whether its endpoint has shown that another process answers by now."""
        self._upstream = upstream
        self._stats = preset.stats if preset else OWN_STATS
        self._log = preset.log() if preset and preset.log else None
        self._now = now
        self._tasks = Tasks()
        self._recollection = Recollection()
        self._lines_of_progress = 0
        self._counters: tuple[float, ...] = ()
        self._last: Reading | None = None
        self._of_canary: Reading | None = None
        self._has_line = asyncio.Event()
        self._is_canary_out = False

    def listen(self, output: Output | None) -> None:
        """Read its log from now on, where its lines tell anything."""
        if output is not None and self._log is not None:
            self._tasks.start(self._listen(output), "read a worker's log")

    async def close(self) -> None:
        """Read on no more."""
        await self._tasks.close()

    @property
    def own_words(self) -> OwnWords | None:
        """What has changed since it was new; None while nothing can be told."""
        return self._recollection.own_words()

    async def ask(self, timeout_s: float = ASK_TIMEOUT_S) -> Reading | None:
        """What its endpoint says now; None where there is none, or it does not answer in time."""
        if self._stats is None:
            return None
        url, headers = self._upstream.url + self._stats.path, self._upstream.headers
        try:
            async with self._upstream.session.get(
                url, headers=headers, timeout=aiohttp.ClientTimeout(total=timeout_s)
            ) as answer:
                if answer.status in NOT_ANSWERED_YET:
                    return None
                body = await answer.content.read(LONGEST_ANSWER_BYTES) if answer.status == 200 else b""
        except (aiohttp.ClientError, OSError, TimeoutError):
            return None
        reading = self._stats.read(body)
        if reading is None:
            self._stats = None
            return None
        self.is_restarted |= self._last is not None and is_another_life(self._last, reading)
        self._last = reading
        return reading

    async def counters(self, timeout_s: float) -> tuple[float, ...]:
        """What grows while it gets anywhere; those of its endpoint as they were when it last answered."""
        reading = await self.ask(timeout_s)
        if reading is not None:
            self._counters = reading.totals.counters
        return (float(self._lines_of_progress), *self._counters)

    # ---- around a canary ----

    @asynccontextmanager
    async def around_canary(self, prompt_tokens: int, model: str = "") -> AsyncIterator[AboutCanary]:
        """Within the block a canary is out; behind it, if it was not broken off, what the worker told of it."""
        about, before = AboutCanary(), await self.ask()
        self._has_line.clear()
        self._of_canary, self._is_canary_out = None, True
        try:
            yield about
            about.reading = _both(await self._counted_since(before), await self._last_line())
        finally:
            self._is_canary_out = False
        if about.reading is not None and not about.is_void:
            self._recollection.add(about.reading, prompt_tokens, model)

    async def _counted_since(self, before: Reading | None) -> Reading | None:
        after = await self.ask()
        return between(before, after) if before is not None and after is not None else None

    async def _last_line(self) -> Reading | None:
        if self._log is not None and self._log.tells_of_answers:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._has_line.wait(), LAST_LINE_S)
        return self._of_canary

    # ---- its log ----

    async def _listen(self, output: Output) -> None:
        begun = b""
        async for chunk in output.follow():
            *lines, begun = (begun + chunk).split(b"\n")
            begun = begun[-LONGEST_LINE_BYTES:]
            for line in lines:
                self._read(line)
            await asyncio.sleep(READ_PAUSE_S)

    def _read(self, line: bytes) -> None:
        reading = self._log.read(line.decode("utf-8", errors="replace"), self._now()) if self._log else None
        if reading is None:
            return
        self._lines_of_progress += reading.is_progress
        if not self._is_canary_out:
            self._recollection.add(reading)
        elif reading.step_ms is not None or reading.tokens_per_step is not None or reading.decode_tok_s is not None:
            self._of_canary = _both(self._of_canary, reading)
            self._has_line.set()
        else:
            self._recollection.add(reading)  # of memory: that is the same whoever asks


def _both(first: Reading | None, then: Reading | None) -> Reading | None:
    """What either tells; the later one is believed where both do."""
    if first is None or then is None:
        return then or first
    told = {name: value for name in Reading.__slots__ if (value := getattr(then, name)) not in (None, ())}
    return replace(first, **told)
