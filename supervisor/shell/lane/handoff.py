"""What a worker hands to its successor: its prefix cache, saved before it stops and loaded before the next one serves.

Only workers that have ``/prefix/save`` and ``/prefix/load`` take part; any other answers 404, and nothing is lost but
that answer's time. Nothing here raises: a handoff that fails or takes too long is a recycle without one.
"""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

import aiohttp
import structlog

from supervisor.jsontext import decode
from supervisor.settings import LaneSettings
from supervisor.shell.front.gate import Gate
from supervisor.shell.front.upstream import Upstream
from supervisor.shell.lane.recycle_desk import RecycleDesk
from supervisor.shell.pace import every

log = structlog.get_logger(__name__)

IDLE_LOOK_S = 0.1
SHARE_OF_FREE_DISK = 0.5
WRITING_SHARE = 0.8
"""Of the time for a save, what the worker is told: the rest is for its answer."""
LONGEST_ANSWER_BYTES = 65536


class Handoff:
    """Of one lane. What was saved is loaded once: a cache that breaks a worker must not break the next one too."""

    def __init__(self, settings: LaneSettings, folder: Path, gate: Gate, recycles: RecycleDesk) -> None:
        self.settings = settings
        self._folder = folder
        self._gate = gate
        self._recycles = recycles

    async def save(self, old: Upstream, within_s: float) -> None:
        """Let ``old`` save its cache, for at most ``within_s`` seconds."""
        most_bytes = await asyncio.to_thread(self._room_bytes)
        if most_bytes <= 0 or within_s <= 0:
            return
        body = {"max_bytes": most_bytes, "timeout_s": round(within_s * WRITING_SHARE, 3)}
        began = asyncio.get_running_loop().time()
        tokens = await self._ask(old, "save", body, within_s, "saved_tokens")
        self._recycles.prefix_saved(tokens, asyncio.get_running_loop().time() - began)

    async def load(self, new: Upstream, before: Upstream | None) -> None:
        """Give ``new`` what was saved. ``before``: a worker that still serves beside it, and saves in an idle moment.

        Each of the two takes at most ``prefix.timeout``.
        """
        within_s = self.settings.prefix.timeout
        if before is not None:
            await self._save_in_passing(before, within_s)
        if await asyncio.to_thread(self._folder.exists):
            tokens = await self._ask(new, "load", {}, within_s, "restored_tokens")
            await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)
            self._recycles.prefix_restored(tokens)

    async def _save_in_passing(self, old: Upstream, within_s: float) -> None:
        """A save takes the worker's own thread, so a stream in flight would stand still meanwhile."""
        ends = asyncio.get_running_loop().time() + within_s
        async for _ in every(IDLE_LOOK_S):
            left_s = ends - asyncio.get_running_loop().time()
            if left_s <= 0:
                return
            if not self._gate.inflight(old.generation):
                await self.save(old, left_s)
                return

    def _room_bytes(self) -> int:
        try:
            self._folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            free = shutil.disk_usage(self._folder.parent).free
        except OSError:
            return 0
        return min(self.settings.prefix.handoff, int(free * SHARE_OF_FREE_DISK))

    async def _ask(self, worker: Upstream, what: str, body: dict[str, Any], within_s: float, answer: str) -> int:
        timeout = aiohttp.ClientTimeout(total=within_s)
        body = {"folder": str(self._folder), **body}
        trouble: str | None = None
        try:
            url = f"{worker.url}/prefix/{what}"
            async with worker.session.post(url, json=body, headers=worker.headers, timeout=timeout) as response:
                content = await response.content.read(LONGEST_ANSWER_BYTES)
                if response.status == 200:
                    return self._tokens(worker, what, content, answer)
                if response.status not in (404, 405, 501):
                    trouble = f"{response.status} {content[:200].decode(errors='replace')}"
        except TimeoutError:
            trouble = f"not done within {within_s:.1f} s"
        except (aiohttp.ClientError, OSError) as error:
            trouble = repr(error)
        if trouble:
            log.warning(f"prefix_{what}_failed", lane=self.settings.name, generation=worker.generation, error=trouble)
        return 0

    def _tokens(self, worker: Upstream, what: str, content: bytes, answer: str) -> int:
        told = decode(content)
        tokens = told.get(answer) if told else None
        tokens = tokens if isinstance(tokens, int) and tokens > 0 else 0
        log.info(f"prefix_{what}", lane=self.settings.name, generation=worker.generation, tokens=tokens)
        return tokens
