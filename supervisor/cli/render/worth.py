"""What the recycles were worth, as a line."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from supervisor.core.words import length, long_length, plural

LEAST_GAIN = 0.005


def monday(now: datetime) -> datetime:
    """The first moment of this week, in ``now``'s zone."""
    return (now - timedelta(days=now.weekday())).replace(hour=0, minute=0, second=0, microsecond=0)


def worth_line(worth: Mapping[str, Any]) -> str:
    """``since Monday: 3 recycles, +41 % tokens, 3 min 32 s down, 5 requests held, 0 failed``"""
    recycles = int(worth.get("recycles") or 0)
    if not recycles:
        return "since Monday: no recycle was needed"
    gain, downtime_s = float(worth.get("gain") or 0.0), float(worth.get("downtime_s") or 0.0)
    parts = [
        plural(recycles, "recycle"),
        f"+{gain * 100:.0f} % tokens" if gain >= LEAST_GAIN else "",
        f"{_length(downtime_s)} down" if downtime_s else "no downtime",
        f"{plural(int(worth.get('held') or 0), 'request')} held",
        f"{int(worth.get('failed') or 0)} failed",
    ]
    return f"since Monday: {', '.join(part for part in parts if part)}"


def _length(seconds: float) -> str:
    return length(seconds) if seconds < 60 else long_length(seconds)
