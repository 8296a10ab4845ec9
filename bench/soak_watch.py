"""What must hold all along: workers per lane, gate counts, memory and open files."""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import psutil

from bench.soak_chaos import Chaos
from bench.soak_clients import SoakClients
from bench.soak_failures import lost_ones
from bench.soak_lanes import SoakLane
from bench.soak_waiting import becomes
from tests.fakes import FOLDER
from tests.scenarios.daemon_process import RunningDaemon

EVERY_S = 0.25
SAY_EVERY_S = 10.0
QUIET_EVERY_S = 20.0
SETTLE_S = 5.0


@dataclass(frozen=True)
class Size:
    """The daemon at a moment, in seconds since the soak began."""

    at_s: float
    rss_mib: float
    fds: int


@dataclass
class Watch:
    """Looks four times a second, and keeps what it finds wrong: workers too many, gates that miscount."""

    daemon: RunningDaemon
    lanes: dict[str, SoakLane]
    clients: SoakClients
    chaos: Chaos
    too_many: list[str] = field(default_factory=list)
    gates_wrong: list[str] = field(default_factory=list)
    sizes: list[Size] = field(default_factory=list)
    quiet_moments: int = 0
    most_workers: Counter[str] = field(default_factory=Counter)
    began: float = field(default_factory=time.monotonic)

    async def run(self) -> None:
        """Until it is cancelled."""
        said = self.began
        while True:
            await asyncio.sleep(EVERY_S)
            self.look()
            if time.monotonic() - said >= SAY_EVERY_S:
                said = time.monotonic()
                self.say()

    async def take_quiet_moments(self) -> None:
        """Until it is cancelled."""
        while True:
            await asyncio.sleep(QUIET_EVERY_S)
            await self.quiet_moment()

    def look(self) -> None:
        """Count workers, and measure the daemon."""
        daemon = psutil.Process(self.daemon.pid)
        counted = Counter(filter(None, map(_lane_of, daemon.children(recursive=True))))
        for name, lane in self.lanes.items():
            self.most_workers[name] = max(self.most_workers[name], counted[name])
            if counted[name] > lane.most_workers:
                self.too_many.append(f"at {self._age():.1f} s lane {name} had {counted[name]} workers")
        size = Size(self._age(), daemon.memory_info().rss / 2**20, daemon.num_fds())
        self.sizes.append(size)

    async def quiet_moment(self, within_s: float = 60.0) -> None:
        """Let no new request come, and see that all gates count none."""
        async with self.chaos.pause():
            if not await becomes(self._is_silent, within_s):
                self.gates_wrong.append(f"at {self._age():.1f} s {self.clients.inflight} requests had no end")
            elif not await becomes(self._are_gates_empty, SETTLE_S):
                counts = await self.gate_counts()
                self.gates_wrong.append(f"at {self._age():.1f} s, without any client, gates counted {counts}")
            else:
                self.quiet_moments += 1

    async def _is_silent(self) -> bool:
        return self.clients.inflight == 0

    async def _are_gates_empty(self) -> bool:
        return not await self.gate_counts()

    async def gate_counts(self) -> dict[str, tuple[int, int]]:
        """In flight and queued of the lanes where any is not 0."""
        lanes = (await self.daemon.get("/api/lanes"))["lanes"]
        counts = {lane["name"]: (int(lane["inflight"]), int(lane["queued"])) for lane in lanes}
        return {name: both for name, both in counts.items() if both != (0, 0)}

    def say(self) -> None:
        """One line for people."""
        size, counts = self.sizes[-1], self.clients.counts
        lost = len(lost_ones(self.clients.failures, self.chaos.deaths))
        wrong = len(self.too_many) + len(self.gates_wrong) + len(self.chaos.wrong)
        print(
            f"{self._age():6.0f} s  {counts['requests']} requests, {counts['failed']} failed, {lost} of these lost; "
            f"{len(self.chaos.done)} events; {size.rss_mib:.1f} MiB, {size.fds} files; {wrong} wrong",
            file=sys.stderr,
            flush=True,
        )

    def _age(self) -> float:
        return time.monotonic() - self.began


def growth(sizes: list[Size], of: Callable[[Size], float]) -> dict[str, Any]:
    """From the second tenth of the soak, the first being warm-up, to the last: medians, and the slope an hour."""
    tenth = max(len(sizes) // 10, 1)
    warm = sizes[tenth:]
    first, last = (statistics.median(map(of, part)) for part in (warm[:tenth], warm[-tenth:]))
    line = statistics.linear_regression([one.at_s for one in warm], [of(one) for one in warm])
    return {
        "second_tenth": round(first, 2),
        "last_tenth": round(last, 2),
        "growth": round(last - first, 2),
        "slope_per_hour": round(3600 * line.slope, 2),
        "most": round(max(map(of, sizes)), 2),
        "each_tenth": [
            round(statistics.median(map(of, sizes[start : start + tenth])), 1)
            for start in range(0, len(sizes) - tenth + 1, tenth)
        ],
    }


def _lane_of(process: psutil.Process) -> str | None:
    try:
        command = process.cmdline()
        is_worker = len(command) > 2 and command[1] == str(FOLDER) and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return None
    return command[command.index("--model") + 1] if is_worker else None
