"""Keeps a lane's baseline under the fingerprint of what it was measured on, and knows what changed when that did."""

from __future__ import annotations

import asyncio
from typing import Any

from supervisor.core.host.host_check import HostCheck
from supervisor.core.lane.events import BaselineRecalled
from supervisor.core.speed.judge import Judge
from supervisor.settings import LaneSettings
from supervisor.shell.lane.fingerprint import fingerprint_of, fingerprint_parts
from supervisor.shell.lane.lane_memory import HOST, LaneMemory
from supervisor.shell.lane.versions import what_runs
from supervisor.shell.machine.clock import rfc3339


class BaselineBook:
    """One lane's. Judge and host check forget whenever something changes that a rate depends on."""

    def __init__(self, judge: Judge, check: HostCheck, memory: LaneMemory) -> None:
        self.fingerprint = ""
        self._judge = judge
        self._check = check
        self._memory = memory
        self._parts: dict[str, str] = {}
        self._ran: dict[str, Any] = {}
        self._changed: dict[str, Any] | None = None
        self._kept: dict[str, Any] = {}

    async def look(self, settings: LaneSettings, under: str | None) -> BaselineRecalled | None:
        """See whether it is still the same worker on the same machine; with another one, what was learned is void.

        Then it is for the lane to take up what was learned of that one before.
        """
        parts = await asyncio.to_thread(fingerprint_parts, settings, under)
        now = fingerprint_of(parts)
        if now == self.fingerprint:
            return None
        if not self.fingerprint:
            await self._recall_parts()
        if self._parts and self._parts != parts:
            changed = sorted(name for name in self._parts.keys() | parts if self._parts.get(name) != parts.get(name))
            self._changed = {"time": rfc3339(self._memory.clock.wall()), "parts": changed}
        self.fingerprint, self._parts = now, parts
        self._ran = await asyncio.to_thread(what_runs, settings)
        await self._memory.keep_fingerprint({"parts": parts, "changed": self._changed})
        kept = await self._memory.kept_baseline(now)
        self._check.restore((kept or {}).get(HOST))
        return BaselineRecalled(self._memory.clock.now(), now, kept)

    def taken_up(self) -> None:
        """The lane has taken up what was kept."""
        self._kept = self._judge.to_json()

    async def _recall_parts(self) -> None:
        document = await self._memory.recall_fingerprint()
        self._parts, self._changed = dict(document.get("parts") or {}), document.get("changed")

    async def keep(self) -> None:
        """Make durable what was learned since the last time."""
        now = self._judge.to_json()
        if now != self._kept:
            self._kept = now
            await self.close()

    async def close(self) -> None:
        """Make durable what was learned; of the host something is with every run."""
        await self._memory.keep_baseline(self._judge, self._check, self.fingerprint, self._ran)

    async def forget(self) -> None:
        """A person wants it learned anew, and the judge has forgotten it."""
        self._kept = self._judge.to_json()
        await self._memory.forget_baselines()

    def to_json(self) -> dict[str, Any]:
        """For people: what fresh means, under what, and what changed last: {time, parts}, or None."""
        summary = self._judge.baseline_summary()
        return {"lane": self._memory.lane, "fingerprint": self.fingerprint, "changed": self._changed, **summary}
