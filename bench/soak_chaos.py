"""What goes wrong in the soak, and when: drawn from the seed alone, so that a run can be had again."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import time
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from bench.soak_clients import SoakClients
from bench.soak_lanes import AGED, SLOW_START, SoakLane, configuration
from bench.soak_waiting import becomes
from tests.scenarios.daemon_process import RunningDaemon

EVERY_S = 1.0
"""Mean time between two events; one that takes long goes on beside the next."""
ALONE_S = 8.0
"""How long one lane is asked alone, so that canaries and proofs of its new worker have the device to themselves."""
CROWD = 4
"""A busy lane is asked to replace its worker while at least so many requests are in flight."""
CROWD_WITHIN_S = 8.0
CALM_WITHIN_S = 30.0
DEADLY_EVERY_S = 15.0
"""Least time between two deaths in one lane, lest all that a lane does is start."""

WEIGHTS = {
    "kill": 4,
    "hang": 2,
    "slow_start": 2,
    "quick_start": 2,
    "age": 2,
    "rejuvenate": 1,
    "recycle": 14.0,
    "alone": 0.5,
    "probe": 1,
    "reload_threshold": 2,
    "reload_command": 3,
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


def schedule(seed: int, seconds: float, lanes: dict[str, SoakLane]) -> list[Planned]:
    """Events until `seconds`; deaths in one lane keep their distance."""
    dice = random.Random(seed)
    planned: list[Planned] = []
    last_death = dict.fromkeys(lanes, -DEADLY_EVERY_S)
    at = 0.0
    while True:
        at += dice.expovariate(1 / EVERY_S)
        if at >= seconds:
            return planned
        lane = dice.choices(list(lanes.values()), [one.share for one in lanes.values()])[0].name
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
    clients: SoakClients
    done: list[Fault] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    """Events for which there was nothing to do, such as a kill where no worker was."""
    wrong: list[str] = field(default_factory=list)
    """Answers of the daemon that are not as they should be."""
    with_guest: bool = False
    _deaths: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    """By lane, in order of time."""
    _pausing: asyncio.Lock = field(default_factory=asyncio.Lock)
    _reloading: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def run(self, planned: list[Planned]) -> None:
        """All of the schedule."""
        began = time.monotonic()
        async with asyncio.TaskGroup() as group:
            for event in planned:
                await asyncio.sleep(max(0.0, began + event.after_s - time.monotonic()))
                group.create_task(self._do(event))

    async def _do(self, event: Planned) -> None:
        if await getattr(self, f"_{event.kind}")(self.lanes[event.lane]):
            self.done.append(Fault(time.monotonic(), event.lane, event.kind))
            if event.kind in DEADLY:
                self._deaths[event.lane].append(time.monotonic())
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

    @asynccontextmanager
    async def pause(self, *, all_but: str | None = None) -> AsyncIterator[None]:
        """No new requests, but to this lane; one such block at a time.

        It begins when no worker is being replaced, lest it empty a lane in the middle of its recycle.
        """
        async with self._pausing:
            await self.calm()
            with self.clients.paused(all_but=all_but):
                yield

    async def calm(self) -> None:
        """Wait until no busy lane is without its worker for a recycle; not for ever."""
        await becomes(self._is_calm, CALM_WITHIN_S)

    def deaths(self, lane: str, since: float, until: float) -> int:
        """How many workers of the lane were killed or stopped between these moments."""
        moments = self._deaths[lane]
        return bisect_right(moments, until) - bisect_left(moments, since)

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

    async def _alone(self, lane: SoakLane) -> bool:
        if self._pausing.locked():
            return False
        lane.turn(**AGED)
        async with self.pause(all_but=lane.name):
            await asyncio.sleep(ALONE_S)
        return True

    async def _recycle(self, lane: SoakLane) -> bool:
        async with self._crowd(lane) as has_crowd:
            if not has_crowd:
                return False
            status, _ = await self.daemon.post(f"/api/lanes/{lane.name}/recycle", {"reason": "soak"})
            return self._is_done(status, "recycle", (409,))

    async def _probe(self, lane: SoakLane) -> bool:
        status, _ = await self.daemon.post(f"/api/lanes/{lane.name}/probe")
        return self._is_done(status, "probe", (409,))

    async def _reload_threshold(self, lane: SoakLane) -> bool:
        lane.below = 0.86 if lane.below == 0.89 else 0.89
        return await self._reload()

    async def _reload_command(self, lane: SoakLane) -> bool:
        async with self._crowd(lane) as has_crowd:
            if not has_crowd:
                return False
            lane.edition += 1
            return await self._reload()

    async def _guest(self, _lane: SoakLane) -> bool:
        self.with_guest = not self.with_guest
        return await self._reload()

    async def _reload_bad(self, lane: SoakLane) -> bool:
        whole = configuration(self.lanes, with_guest=self.with_guest)
        whole["lanes"][lane.name]["start_timeout"] = "5 parsecs"
        status, answer = await self._load(whole)
        if not 400 <= status < 500 or "start_timeout" not in str(answer):
            self.wrong.append(f"a bad file got {status}: {answer}")
        return True

    @asynccontextmanager
    async def _crowd(self, lane: SoakLane) -> AsyncIterator[bool]:
        """Whether there is one, for a recycle that the block asks for.

        Where workers overlap, the other lanes rest until it is over: a proof wants the device to itself.
        """
        if not lane.overlaps:
            yield await becomes(lambda: self._is_crowded(lane), CROWD_WITHIN_S)
            return
        if self._pausing.locked():
            yield False
            return
        async with self.pause(all_but=lane.name):
            yield await becomes(lambda: self._is_crowded(lane, is_alone=True), CROWD_WITHIN_S)
            await becomes(lambda: self._has_turned(lane), ALONE_S)

    async def _is_crowded(self, lane: SoakLane, *, is_alone: bool = False) -> bool:
        if not lane.is_busy:
            return True
        if self._pausing.locked() and not is_alone:
            return False
        return bool((await self.daemon.lane(lane.name))["inflight"] >= CROWD)

    async def _has_turned(self, lane: SoakLane) -> bool:
        """No new worker of the lane waits for its turn."""
        return (await self.daemon.lane(lane.name))["recycling"] in (None, "retiring")

    async def _is_calm(self) -> bool:
        """No busy lane is without its worker for a recycle."""
        lanes = (await self.daemon.get("/api/lanes"))["lanes"]
        return not any(lane["recycling"] for lane in lanes if self.lanes[lane["name"]].is_busy)

    async def _reload(self) -> bool:
        status, answer = await self._load(configuration(self.lanes, with_guest=self.with_guest))
        if status != 200:
            self.wrong.append(f"a reload got {status}: {answer}")
        return status == 200

    async def _load(self, whole: dict[str, Any]) -> tuple[int, Any]:
        async with self._reloading:
            self.daemon.write_config(whole)
            return await self.daemon.post("/api/reload")

    def _is_done(self, status: int, what: str, refusals: tuple[int, ...]) -> bool:
        if status not in (200, 202, *refusals):
            self.wrong.append(f"{what} got {status}")
        return status in (200, 202)


def by_kind(done: list[Fault]) -> dict[str, Any]:
    """Counts by kind, and of all that are faults."""
    counts = Counter(one.kind for one in done)
    return {**dict(sorted(counts.items())), "faults": sum(counts[kind] for kind in FAULTS)}
