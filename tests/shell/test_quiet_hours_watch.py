"""Lanes hear of their quiet hours as soon as what they believe is wrong."""

from __future__ import annotations

from datetime import UTC, datetime

from supervisor.settings import LaneSettings
from supervisor.shell.quiet_hours_watch import tell_of_quiet_hours
from tests.config.loading import loaded

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
NIGHT = datetime(2026, 3, 1, 2, 0, tzinfo=UTC)


class Lane:
    """A lane that believes what it was told."""

    def __init__(self, window: str) -> None:
        text = f"lanes: {{chat: {{command: [serve, '{{port}}'], recycle: {{window: {window}}}}}}}"
        self.settings: LaneSettings = loaded(text).settings.lanes["chat"]
        self.is_window_open = True
        self.told = 0

    def window_changed(self, *, is_open: bool) -> None:
        self.is_window_open = is_open
        self.told += 1


def test_a_lane_is_told_once_of_each_change_and_again_if_it_has_forgotten() -> None:
    lane = Lane("'01:00-06:00 UTC'")
    for moment in (NOON, NOON, NIGHT, NOON):
        tell_of_quiet_hours([lane], moment)
    assert (lane.is_window_open, lane.told) == (False, 3)
    lane.is_window_open = True
    tell_of_quiet_hours([lane], NOON)
    assert not lane.is_window_open


def test_a_lane_without_a_window_may_always_recycle() -> None:
    lane = Lane("null")
    tell_of_quiet_hours([lane], NOON)
    assert (lane.is_window_open, lane.told) == (True, 0)
