"""``recycle.window``: the hours of the day in which a planned recycle may happen."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, time
from zoneinfo import ZoneInfo

_WINDOW = re.compile(r"([0-9]{2}:[0-9]{2})-([0-9]{2}:[0-9]{2})(?: +(\S+))?")


@dataclass(frozen=True, slots=True)
class QuietHours:
    """From ``start`` to before ``end``, each day, over midnight if ``end`` is the earlier one."""

    start: time
    end: time
    zone: ZoneInfo | None
    """None: the machine's own time."""

    def holds(self, moment: datetime) -> bool:
        """Whether ``moment`` (with its zone) lies within the hours."""
        local = moment.astimezone(self.zone).time()
        if self.start < self.end:
            return self.start <= local < self.end
        return local >= self.start or local < self.end


def parse_quiet_hours(text: str) -> QuietHours:
    """Reads ``01:00-06:00 Europe/Berlin``. Raises ValueError that says how to write it."""
    found = _WINDOW.fullmatch(text)
    if found is None:
        raise ValueError('is not a window; write "01:00-06:00" or "01:00-06:00 Europe/Berlin"')
    start, end = _time_of_day(found[1]), _time_of_day(found[2])
    if start == end:
        raise ValueError("is an empty window: it ends when it starts")
    return QuietHours(start, end, _zone(found[3]) if found[3] else None)


def _time_of_day(text: str) -> time:
    try:
        return time.fromisoformat(text)
    except ValueError:
        raise ValueError("holds a time that no clock shows; write 00:00 to 23:59") from None


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise ValueError("names an unknown time zone; write one such as Europe/Berlin or UTC") from None
