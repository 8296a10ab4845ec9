"""Moments and courses in words, as people read them in a terminal."""

from __future__ import annotations

from datetime import UTC, datetime

from supervisor.core.words import NOTHING, whole

BARS = "▁▂▃▄▅▆▇█"


def moment(value: object) -> datetime | None:
    """A moment from what the API writes: RFC 3339 text or Unix seconds; None if it is neither."""
    try:
        if isinstance(value, str):
            parsed = datetime.fromisoformat(value)
            return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)
        if isinstance(value, (int, float)) and value > 0:
            return datetime.fromtimestamp(value, UTC)
    except (ValueError, OverflowError, OSError):
        pass
    return None


def ago(value: object, now: datetime | None = None) -> str:
    """How long ago a moment was: ``now``, ``40 s ago``, ``2 h ago``."""
    at = moment(value)
    if at is None:
        return NOTHING
    seconds = ((now or datetime.now(UTC)) - at).total_seconds()
    return "now" if seconds < 1 else f"{whole(seconds)} ago"


def clock(value: object) -> str:
    """A moment on this machine's clock: ``2026-03-01 14:05``."""
    at = moment(value)
    return str(value or NOTHING) if at is None else at.astimezone().strftime("%Y-%m-%d %H:%M")


def sparkline(values: list[float], width: int = 16, top: float | None = None) -> str:
    """The last ``width`` values as bars from 0 to ``top`` (default: the largest of them)."""
    shown = values[-width:]
    height = max([*shown, top or 0.0])
    if height <= 0:
        return ""
    last = len(BARS) - 1
    return "".join(BARS[min(last, max(0, round(value / height * last)))] for value in shown)
