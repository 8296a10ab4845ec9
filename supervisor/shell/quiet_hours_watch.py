"""Tells lanes when the quiet hours of their ``recycle.window`` begin and end.

Looking at the clock on the wall each half minute, where a schedule of edges would have to be right about both nights on
which the clock is set, and about a host that slept through an edge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Protocol

from supervisor.settings import LaneSettings
from supervisor.shell.machine.clock import Clock
from supervisor.shell.pace import every

LOOK_S = 30.0


class Windowed(Protocol):
    """A lane with quiet hours, or without."""

    settings: LaneSettings

    @property
    def is_window_open(self) -> bool:
        """What it believes."""

    def window_changed(self, *, is_open: bool) -> None:
        """The hours began or ended."""


async def watch_quiet_hours(lanes: Callable[[], Iterable[Windowed]], clock: Clock) -> None:
    """Never ends."""
    async for _ in every(LOOK_S):
        tell_of_quiet_hours(lanes(), datetime.fromtimestamp(clock.wall(), UTC))


def tell_of_quiet_hours(lanes: Iterable[Windowed], moment: datetime) -> None:
    """Tell each lane that believes something else."""
    for lane in lanes:
        hours = lane.settings.recycle.quiet_hours
        is_open = hours is None or hours.holds(moment)
        if lane.is_window_open != is_open:
            lane.window_changed(is_open=is_open)
