"""The frozen shape of lanes.yaml. Durations are seconds, sizes bytes, shares and ratios plain numbers.

Where the file may say ``auto`` or ``off`` instead of a number, the attribute is None.
"""

from __future__ import annotations

from supervisor.settings.daemon import (
    FleetSettings,
    HistorySettings,
    LogSettings,
    OnRecycleSettings,
    Settings,
    TopSettings,
    is_loopback,
)
from supervisor.settings.lane import LaneSettings
from supervisor.settings.lane_blocks import (
    AfterSettings,
    BaselineSettings,
    CanarySettings,
    DegradedSettings,
    HangSettings,
    HoldSettings,
    MemorySettings,
    PrefixSettings,
    RecycleSettings,
    SpeculationSettings,
)
from supervisor.settings.quiet_hours import QuietHours

__all__ = [
    "AfterSettings",
    "BaselineSettings",
    "CanarySettings",
    "DegradedSettings",
    "FleetSettings",
    "HangSettings",
    "HistorySettings",
    "HoldSettings",
    "LaneSettings",
    "LogSettings",
    "MemorySettings",
    "OnRecycleSettings",
    "PrefixSettings",
    "QuietHours",
    "RecycleSettings",
    "Settings",
    "SpeculationSettings",
    "TopSettings",
    "is_loopback",
]
