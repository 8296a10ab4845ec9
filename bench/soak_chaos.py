"""What goes wrong in the soak, and when: drawn from the seed alone, so that a run can be had again."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from bench.soak_lanes import AGED, SLOW_START, SoakLane, configuration
from tests.scenarios.daemon_process import RunningDaemon

EVERY_S = 1.5
"""Mean time between two events."""
DEADLY_EVERY_S = 12.0
"""Least time between two deaths in one lane, lest all that a lane does is start."""

WEIGHTS = {
    "kill": 4,
    "hang": 2,
    "slow_start": 2,
    "quick_start": 2,
    "age": 2,
    "rejuvenate": 1,
    "recycle": 8,
    "probe": 1,
    "reload_threshold": 2,
    "reload_command": 2,
    "reload_bad": 1,
    "guest": 1,
}
DEADLY = frozenset({"kill", "hang"})
FAULTS = frozenset({"kill", "hang", "slow_start", "age", "reload_bad"})


@dataclass(frozen=True)
class Fault:
    """Something that was done to a lane; `at` is in monotonic seconds."""

    at: float
    lane: str
    kind: str


@dataclass(frozen=True)
class Planned:
    """An event of the schedule; `after_s` since the chaos began."""

    after_s: float
    lane: str
    kind: str


def schedule(seed: int, seconds: float, lanes: list[str]) -> list[Planned]:
    """Events until `seconds`; deaths in one lane keep their distance."""
    dice = random.Random(seed)
    planned: list[Planned] = []
    last_death = dict.fromkeys(lanes, -DEADLY_EVERY_S)
    at = 0.0
    while True:
        at += dice.expovariate(1 / EVERY_S)
        if at >= seconds:
            return planned
        lane = dice.choice(lanes)
        kind = dice.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
        if kind in DEADLY:
            if at - last_death[lane] < DEADLY_EVERY_S:
                continue
            last_death[lane] = at
        planned.append(Planned(at, lane, kind))


@dataclass
class Chaos:
    """Does what the schedule says to a daemon and its lanes."""

    daemon: RunningDaemon
    lanes: dict[str, SoakLane]
    done: list[Fault] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    """Events for which there was nothing to do, such as a kill where no worker was."""
    wrong: list[str] = field(default_factory=list)
    """Answers of the daemon that are not as they should be."""
    with_guest: bool = False

    async def run(self, planned: list[Planned]) -> None:
        """All of the schedule, then everything well again."""
        began = time.monotonic()
        for event in planned:
            await asyncio.sleep(max(0.0, began + event.after_s - time.monotonic()))
            was_done = await getattr(self, f"_{event.kind}")(self.lanes[event.lane])
            if was_done:
                self.done.append(Fault(time.monotonic(), event.lane, event.kind))
            else:
                self.skipped[event.kind] += 1

    async def attend(self) -> None:
        """A person who starts each lane that backs off or has failed; ends when it is cancelled."""
        while True:
            for name in self.lanes:
                with contextlib.suppress(aiohttp.ClientResponseError):  # the guest may be gone
                    if (await self.daemon.lane(name))["state"] in ("backing_off", "failed"):
                        await self.daemon.post(f"/api/lanes/{name}/start")
                        self.done.append(Fault(time.monotonic(), name, "start"))
            await asyncio.sleep(0.5)

    def deaths(self, lane: str, since: float, until: float) -> int:
        """How many workers of the lane were killed or stopped between these moments."""
        return sum(one.lane == lane and one.kind in DEADLY and since <= one.at <= until for one in self.done)

    async def _signal(self, lane: SoakLane, number: signal.Signals) -> bool:
        worker = (await self.daemon.lane(lane.name))["worker"]
        if not worker or not worker["pid"]:
            return False
        try:
            os.kill(worker["pid"], number)
        except ProcessLookupError:
            return False
        return True

    async def _kill(self, lane: SoakLane) -> bool:
        return await self._signal(lane, signal.SIGKILL)

    async def _hang(self, lane: SoakLane) -> bool:
        return await self._signal(lane, signal.SIGSTOP)

    async def _slow_start(self, lane: SoakLane) -> bool:
        lane.turn(**SLOW_START)
        return True

    async def _quick_start(self, lane: SoakLane) -> bool:
        lane.turn(**dict.fromkeys(SLOW_START))
        return True

    async def _age(self, lane: SoakLane) -> bool:
        lane.turn(**AGED)
        return True

    async def _rejuvenate(self, lane: SoakLane) -> bool:
        lane.turn(**dict.fromkeys(AGED))
        return True

    async def _recycle(self, lane: SoakLane) -> bool:
        status, _ = await self.daemon.post(f"/api/lanes/{lane.name}/recycle", {"reason": "soak"})
        return self._is_done(status, "recycle", (409,))

    async def _probe(self, lane: SoakLane) -> bool:
        status, _ = await self.daemon.post(f"/api/lanes/{lane.name}/probe")
        return self._is_done(status, "probe", (409,))

    async def _reload_threshold(self, lane: SoakLane) -> bool:
        lane.below = 0.86 if lane.below == 0.89 else 0.89
        return await self._reload()

    async def _reload_command(self, lane: SoakLane) -> bool:
        lane.edition += 1
        return await self._reload()

    async def _guest(self, _lane: SoakLane) -> bool:
        self.with_guest = not self.with_guest
        return await self._reload()

    async def _reload_bad(self, lane: SoakLane) -> bool:
        whole = configuration(self.lanes, with_guest=self.with_guest)
        whole["lanes"][lane.name]["start_timeout"] = "5 parsecs"
        self.daemon.write_config(whole)
        status, answer = await self.daemon.post("/api/reload")
        if not 400 <= status < 500 or "start_timeout" not in str(answer):
            self.wrong.append(f"a bad file got {status}: {answer}")
        return True

    async def _reload(self) -> bool:
        self.daemon.write_config(configuration(self.lanes, with_guest=self.with_guest))
        status, answer = await self.daemon.post("/api/reload")
        if status != 200:
            self.wrong.append(f"a reload got {status}: {answer}")
        return status == 200

    def _is_done(self, status: int, what: str, refusals: tuple[int, ...]) -> bool:
        if status not in (200, 202, *refusals):
            self.wrong.append(f"{what} got {status}")
        return status in (200, 202)


def by_kind(done: list[Fault]) -> dict[str, Any]:
    """Counts by kind, and of all that are faults."""
    counts = Counter(one.kind for one in done)
    return {**dict(sorted(counts.items())), "faults": sum(counts[kind] for kind in FAULTS)}
