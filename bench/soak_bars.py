"""What a soak is held to: each number, its bar, and whether it meets it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

FULL_SECONDS = 3600.0
SHORT_SHARE = 0.5
"""Bars of how much must have happened are for a full soak; a shorter one, where chance weighs more, is held to half of
what its time would ask."""

LEAST_REQUESTS = 5000
LEAST_RECYCLES = 200
"""Planned ones: those that wait for the streams in flight."""
LEAST_FAULTS = 100
MOST_RSS_GROWTH_MIB = 5.0
MOST_FD_GROWTH = 8.0
MOST_LAG_MS = 50.0
CROWD_INFLIGHT, CROWD_HELD = 4, 8
"""A recycle in a crowd: so many in flight when the gate closed, so many held when it opened."""
MOST_BARE_SHARE = 0.1
"""Of the planned recycles in place of busy lanes: a death may empty a lane in the middle of one."""


@dataclass(frozen=True)
class Bar:
    """One number and its bar; None where there is no bar on that side."""

    value: float
    at_least: float | None = None
    at_most: float | None = None

    @property
    def holds(self) -> bool:
        return (self.at_least is None or self.value >= self.at_least) and (
            self.at_most is None or self.value <= self.at_most
        )

    def document(self) -> dict[str, Any]:
        """For JSON: the sides that there are, and whether it holds."""
        sides = {"at_least": self.at_least, "at_most": self.at_most}
        return {
            "value": self.value,
            **{name: bar for name, bar in sides.items() if bar is not None},
            "holds": self.holds,
        }


def bars(counts: dict[str, Any], seconds: float) -> dict[str, Bar]:
    """Of a report's counts."""
    share = 1.0 if seconds >= FULL_SECONDS else SHORT_SHARE * seconds / FULL_SECONDS
    recycles, requests = counts["recycles"], counts["requests"]
    bare, in_a_crowd = recycles["in_place_without_a_crowd"], recycles["in_place_in_a_crowd"]
    return {
        "requests": Bar(requests["requests"], at_least=round(share * LEAST_REQUESTS)),
        "faults": Bar(counts["events"]["faults"], at_least=round(share * LEAST_FAULTS)),
        "planned recycles": Bar(recycles["planned"], at_least=round(share * LEAST_RECYCLES)),
        "recycles in place, in a crowd": Bar(in_a_crowd, at_least=round(share * LEAST_RECYCLES)),
        "share without a crowd": Bar(round(bare / max(bare + in_a_crowd, 1), 3), at_most=MOST_BARE_SHARE),
        "requests lost": Bar(counts["failures"]["lost"], at_most=0),
        "requests without an end": Bar(requests["without_an_end"], at_most=0),
        "requests mixed between lanes": Bar(len(counts["wrong"]["mixed"]), at_most=0),
        "gates that miscount": Bar(len(counts["wrong"]["gates"]), at_most=0),
        "moments with workers too many": Bar(len(counts["wrong"]["workers"]), at_most=0),
        "wrong answers of the daemon's own": Bar(len(counts["wrong"]["answers"]), at_most=0),
        "growth of open files": Bar(counts["fds"]["growth"], at_most=MOST_FD_GROWTH),
        "growth of memory, MiB": Bar(counts["rss_mib"]["growth"], at_most=MOST_RSS_GROWTH_MIB),
        "loop lag, p99 ms": Bar(counts["lag_ms"]["without_waits_for_cpu"]["p99"], at_most=MOST_LAG_MS),
        "exit code": Bar(counts["end"]["exit_code"], at_most=0),
        "workers left over": Bar(counts["end"]["left_over"], at_most=0),
    }
