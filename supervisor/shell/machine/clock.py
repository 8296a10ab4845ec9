"""The one place where time enters: monotonic seconds for every wait, wall time for people."""

from __future__ import annotations

import time
from datetime import datetime


class Clock:
    """Two clocks and the way between them."""

    def now(self) -> float:
        """The monotonic clock in seconds: the event loop's own, and the lane's ``at``."""
        return time.monotonic()

    def wall(self) -> float:
        """The Unix time in seconds, for records and history; it may jump."""
        return time.time()  # noqa: TID251 - the one place

    def wall_of(self, at: float) -> float:
        """The Unix time of a monotonic moment."""
        return self.wall() - (self.now() - at)

    def said(self, at: float) -> str:
        """A monotonic moment as RFC 3339 with the local offset."""
        return rfc3339(self.wall_of(at))


def rfc3339(wall: float) -> str:
    """Unix time as RFC 3339 with the local offset, in milliseconds."""
    return datetime.fromtimestamp(wall).astimezone().isoformat(timespec="milliseconds")
