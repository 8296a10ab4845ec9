"""When the daemon is past helping itself."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import cast

from supervisor.core.states import LaneState
from supervisor.shell.fleet import Fleet
from supervisor.shell.machine.host import Host
from supervisor.shell.service.fleet_health import FleetHealth


@dataclass
class StandingLane:
    state: LaneState


@dataclass
class StandingRunner:
    name: str
    lane: StandingLane
    event_under_way_s: float = 0.0


class StandingFleet:
    def __init__(self, *runners: StandingRunner) -> None:
        self._runners = runners

    def lanes(self) -> list[StandingRunner]:
        return list(self._runners)


def health(host: Host, *runners: StandingRunner) -> FleetHealth:
    return FleetHealth(cast("Fleet", StandingFleet(*runners)), host)


def test_the_status_names_each_lane_and_its_state() -> None:
    chat = StandingRunner("chat", StandingLane(LaneState.SERVING))
    code = StandingRunner("code", StandingLane(LaneState.STARTING))
    assert health(Host(), chat, code).status() == "2 lanes: chat serving, code starting"
    assert health(Host(), chat).status() == "1 lane: chat serving"
    assert health(Host()).status() == "no lanes"


def test_a_lane_that_has_been_at_one_event_for_four_intervals_is_trouble() -> None:
    chat = StandingRunner("chat", StandingLane(LaneState.SERVING), event_under_way_s=119.0)
    assert health(Host(), chat).trouble(30.0) is None
    chat.event_under_way_s = 121.0
    assert health(Host(), chat).trouble(30.0) == "no progress in chat"


async def test_a_loop_that_was_late_by_a_quarter_of_the_interval_just_now_is_trouble() -> None:
    host = Host()
    host.start()
    end = time.monotonic() + 0.8
    while time.monotonic() < end:
        pass
    assert "event loop" in (health(host).trouble(1.0) or "")
    assert health(host).trouble(30.0) is None
    host.close()
