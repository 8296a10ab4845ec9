"""How the daemon is as a whole, for its service manager: in a line, and whether it is past helping itself."""

from __future__ import annotations

import time

from supervisor.shell.fleet import Fleet
from supervisor.shell.machine.host import Host

LAG_WINDOW_S = 2.0


class FleetHealth:
    """Looks at the loop and at each lane's runner."""

    def __init__(self, fleet: Fleet, host: Host) -> None:
        self._fleet = fleet
        self._host = host

    def status(self) -> str:
        """``2 lanes: chat serving, code starting``."""
        lanes = [f"{runner.name} {runner.lane.state}" for runner in self._fleet.lanes()]
        return f"{len(lanes)} lane{'' if len(lanes) == 1 else 's'}: {', '.join(lanes)}" if lanes else "no lanes"

    def trouble(self, watchdog_s: float) -> str | None:
        """The loop is late by a quarter of the watchdog's interval, or a lane has been at one event for four."""
        lag_s = self._host.loop_lag.worst_since(time.monotonic() - LAG_WINDOW_S)
        if lag_s > watchdog_s / 4:
            return f"the event loop is {lag_s:.1f} s late"
        stuck = [runner.name for runner in self._fleet.lanes() if runner.event_under_way_s > 4 * watchdog_s]
        return f"no progress in {', '.join(stuck)}" if stuck else None
