"""What a reload changes: decided from the old and the new settings alone, before anything is touched."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from supervisor.settings import Settings

Change = Literal["kept", "updated", "recycled", "added", "removed"]

NEEDS_RESTART = ("listen", "log", "state_dir")
"""Top-level keys that only a new daemon takes up."""


@dataclass(frozen=True, slots=True)
class ReloadPlan:
    """Per lane what is done, and the top-level keys whose new values wait for a new daemon."""

    lanes: dict[str, Change]
    needs_restart: tuple[str, ...]


def plan_reload(old: Settings, new: Settings, running: Settings) -> ReloadPlan:
    """What of ``old`` becomes ``new``, in a daemon that was started with ``running``.

    ``recycled`` only where a key changed that the worker was started with; a threshold alone is ``updated``."""
    lanes: dict[str, Change] = dict.fromkeys(old.lanes, "removed")
    for name, lane in new.lanes.items():
        was = old.lanes.get(name)
        if was is None:
            lanes[name] = "added"
        elif was.worker_key() != lane.worker_key():
            lanes[name] = "recycled"
        else:
            lanes[name] = "kept" if was == lane and old.fleet == new.fleet else "updated"
    waiting = tuple(key for key in NEEDS_RESTART if getattr(running, key) != getattr(new, key))
    return ReloadPlan(lanes, waiting)
