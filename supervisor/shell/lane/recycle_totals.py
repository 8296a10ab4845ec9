"""What a lane's recycles add up to since the daemon began."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class RecycleTotals:
    """Counts records as they are written."""

    def __init__(self) -> None:
        self.count = 0
        self.downtime_s = 0.0
        self._by_trigger: dict[str, dict[str, int]] = {}

    def add(self, record: Mapping[str, Any]) -> None:
        """Count one record of the recycle log, given as its JSON."""
        self.count += 1
        self.downtime_s += float(record.get("downtime_s") or 0.0)
        outcomes = self._by_trigger.setdefault(str(record["trigger"]), {})
        outcome = str(record["outcome"])
        outcomes[outcome] = outcomes.get(outcome, 0) + 1

    def to_json(self) -> dict[str, Any]:
        """{recycles, downtime_s, recycles_by_trigger: {trigger: {outcome: count}}}: a part of a lane's totals."""
        return {
            "recycles": self.count,
            "downtime_s": round(self.downtime_s, 3),
            "recycles_by_trigger": {trigger: dict(outcomes) for trigger, outcomes in self._by_trigger.items()},
        }
