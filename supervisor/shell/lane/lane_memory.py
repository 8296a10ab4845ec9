"""What a lane remembers over daemon restarts: a person's wish, its generations, its budgets, and what fresh means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from supervisor.core.host.host_check import HostCheck
from supervisor.core.lane.body import LaneBody
from supervisor.core.recycle.policy import RecycleAllowance
from supervisor.core.recycle.remedy_memory import RemedyMemory
from supervisor.core.recycle.worth import RecycleCost
from supervisor.core.speed.judge import Judge
from supervisor.core.terms import Wish
from supervisor.history import History
from supervisor.shell.machine.clock import Clock

KEY = "lane"
FINGERPRINT_KEY = "fingerprint"
HOST = "host"
"""Where the baseline's document has what the host check has learned."""


@dataclass(frozen=True)
class LaneMemory:
    """One lane's documents in the history."""

    lane: str
    history: History
    clock: Clock

    async def recall(self, body: LaneBody) -> None:
        """Fill a new lane's body with what an earlier daemon kept."""
        state = await self.history.load(self.lane, KEY)
        if state is None:
            return
        now, wall = self.clock.now(), self.clock.wall()
        body.wish = Wish(state.get("wish", Wish.RUNNING))
        if body.wish is Wish.STOPPED:
            body.reason = "stopped by a person"
        body.workers.last_generation = int(state.get("generation", 0))
        body.workers.peak_memory_bytes = int(state.get("peak_memory_bytes", 0))
        body.start_took_s = float(state.get("start_took_s", 0.0))
        gone_s = max(wall - float(state.get("wall", wall)), 0.0)
        body.remedies = RemedyMemory.from_json(state.get("remedies"), now, gone_s)
        body.cost = RecycleCost.from_json(state.get("cost", {}))
        body.allowance = RecycleAllowance.from_json(state.get("allowance", {}), now, gone_s)

    async def keep(self, body: LaneBody) -> None:
        """Make durable what the next daemon must know."""
        document: dict[str, Any] = {
            "wall": self.clock.wall(),
            "wish": body.wish.value,
            "generation": body.workers.last_generation,
            "peak_memory_bytes": body.workers.peak_memory_bytes,
            "start_took_s": body.start_took_s,
            "remedies": body.remedies.to_json(self.clock.now()),
            "cost": body.cost.to_json(),
            "allowance": body.allowance.to_json(self.clock.now()),
        }
        await self.history.save(self.lane, KEY, document)

    async def recall_fingerprint(self) -> dict[str, Any]:
        """What the lane's last baseline belonged to; empty if it had none."""
        return await self.history.load(self.lane, FINGERPRINT_KEY) or {}

    async def keep_fingerprint(self, document: dict[str, Any]) -> None:
        """Remember what its baseline belongs to now."""
        await self.history.save(self.lane, FINGERPRINT_KEY, document)

    async def forget_baselines(self) -> None:
        """Drop them, of all fingerprints."""
        await self.history.forget_baselines(self.lane)

    async def kept_baseline(self, fingerprint: str) -> dict[str, Any] | None:
        """What was learned of workers with this fingerprint; under ``HOST``, of their host."""
        return await self.history.load_baseline(self.lane, fingerprint)

    async def keep_baseline(self, judge: Judge, check: HostCheck, fingerprint: str, ran: Mapping[str, Any]) -> None:
        """Make durable what was learned, with what it was learned of."""
        document = {**judge.to_json(), "ran": dict(ran), HOST: check.to_json()}
        await self.history.save_baseline(self.lane, fingerprint, document)
