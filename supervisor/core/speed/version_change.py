"""Whether a lane's fresh workers became slower or faster with another version or model, told from kept baselines.

A recycle cures what a process did to itself. What an update did, it cannot; but the baselines from before and after it
show it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from supervisor.core.speed.baseline import Baseline
from supervisor.core.speed.ranks import shift, shift_interval
from supervisor.core.words import share

SPAWNS_THAT_TELL = 4
"""Of fewer, no interval at 95 % can be told without assumptions."""
LEAST_TOLD = 0.05
"""Smaller changes may be the machine's: the two were measured on different days."""


@dataclass(frozen=True, slots=True)
class KeptBaseline:
    """What was kept under one fingerprint. ``wall``: Unix seconds of its newest run."""

    fingerprint: str
    wall: float
    document: Mapping[str, Any]
    """As the judge gave it, with ``ran``: {model, versions}."""

    @property
    def ran(self) -> dict[str, str]:
        """What it was measured of, by name: the model, and the version of each package."""
        ran = self.document.get("ran")
        if not isinstance(ran, Mapping):
            return {}
        versions = ran.get("versions")
        named = dict(versions) if isinstance(versions, Mapping) else {}
        return {str(name): str(value) for name, value in {"model": ran.get("model"), **named}.items() if value}


@dataclass(frozen=True, slots=True)
class VersionChange:
    """Fresh workers now over fresh workers then; the interval leaves out no change."""

    ratio: float
    interval: tuple[float, float]
    now: str
    then: str

    @property
    def text(self) -> str:
        """``since mlx-lm 0.32.2 a fresh worker does 8 % less than with mlx-lm 0.31.0 (3 % to 13 %)``"""
        by = "less" if self.ratio < 1 else "more"
        nearest, furthest = sorted(abs(1 - end) for end in self.interval)
        return (
            f"since {self.now} a fresh worker does {share(abs(1 - self.ratio))} {by} than with {self.then} "
            f"({share(nearest)} to {share(furthest)})"
        )

    def to_json(self) -> dict[str, Any]:
        """{ratio, interval, now, then, text}"""
        interval = [round(end, 4) for end in self.interval]
        return {
            "ratio": round(self.ratio, 4),
            "interval": interval,
            "now": self.now,
            "then": self.then,
            "text": self.text,
        }


def version_change(kept: Sequence[KeptBaseline], fingerprint: str) -> VersionChange | None:
    """What the newest change of version or model did to this lane; None where nothing did, or nothing tells.

    ``fingerprint`` is that of today. A baseline of other settings, but the same versions and model, is no such change.
    """
    now = next((each for each in kept if each.fingerprint == fingerprint), None)
    if now is None or not now.ran:
        return None
    others = [each for each in kept if each.ran and each.ran != now.ran]
    then = max(others, key=lambda each: each.wall, default=None)
    compared = _compared(then.document, now.document) if then is not None else None
    if then is None or compared is None:
        return None
    ratio, low, high = compared
    if low <= 1 <= high or abs(1 - ratio) < LEAST_TOLD:
        return None
    changed = [name for name in {**then.ran, **now.ran} if then.ran.get(name) != now.ran.get(name)]
    return VersionChange(ratio, (low, high), _named(now.ran, changed), _named(then.ran, changed))


def _compared(then: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[float, float, float] | None:
    """Ratio of fresh rates at the smallest size that both know, and its interval."""
    old, new = Baseline.from_json(then), Baseline.from_json(now)
    size = min(set(old.sizes) & set(new.sizes), default=0)
    # Runs of one spawn lie close together in time: each spawn counts as one.
    olds, news = ([math.log(rate) for rate in each.spawn_rates(size)] for each in (old, new))
    if min(len(olds), len(news)) < SPAWNS_THAT_TELL:
        return None
    low, high = shift_interval(olds, news)
    return math.exp(shift(olds, news)), math.exp(low), math.exp(high)


def _named(ran: Mapping[str, str], changed: Sequence[str]) -> str:
    return ", ".join(
        value if name == "model" else f"{name} {value}" for name in changed if (value := ran.get(name, "none"))
    )
