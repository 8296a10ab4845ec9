"""`defaults`, a lane's own keys and its preset become one lane; and each value's origin is found again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from supervisor.config.checks import has
from supervisor.config.problems import KeyPath
from supervisor.presets.filling import fill_in

NOT_FOR_ATTACHED = (
    "command",
    "model",
    "env",
    "cwd",
    "port",
    "start",
    "idle_unload",
    "replace",
    "prefix",
    "speculation",
)
"""Keys of a lane that are about a process of our own."""


@dataclass(frozen=True, slots=True)
class RawLane:
    """A lane as written: not checked yet."""

    name: str
    own: dict[str, Any]
    defaults: dict[str, Any]
    merged: dict[str, Any]
    """Its own keys over those of `defaults`, key by key."""
    filled: dict[str, Any]
    """The same over its preset's."""

    def origin(self, path: KeyPath) -> KeyPath:
        """Where in the file the value at ``path`` of this lane was written."""
        if path and not has(self.own, path) and has(self.defaults, path):
            return ("defaults", *path)
        return ("lanes", self.name, *path)


def raw_lane(name: str, own: Mapping[str, Any], defaults: Mapping[str, Any]) -> RawLane:
    """The lane ``name``, merged; values may still be of any kind."""
    if own.get("attach") is not None:
        # What `defaults` say of processes is not meant for one that someone else runs.
        defaults = {key: value for key, value in defaults.items() if key not in NOT_FOR_ATTACHED}
    merged = _over(defaults, own)
    filled = fill_in(name, merged)
    return RawLane(name, dict(own), dict(defaults), merged, filled)


def _over(lower: Mapping[str, Any], upper: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(lower)
    for key, value in upper.items():
        below = merged.get(key)
        merged[key] = _over(below, value) if isinstance(value, dict) and isinstance(below, dict) else value
    return merged
