"""Fills what a lane leaves out from its preset."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from supervisor.presets import PRESETS
from supervisor.presets.preset import SERVED, Preset

_PROCESS_KEYS: Final = frozenset({"command", "env", "stop_signal", "replace"})


def fill_in(lane: str, written: Mapping[str, Any]) -> dict[str, Any]:
    """The lane's keys, with those of its preset added where it has none; unchecked values pass through.

    An attached server is not ours to start: its preset says only how to talk to it.
    """
    filled = dict(written)
    name = written.get("preset")
    preset = PRESETS.get(name) if isinstance(name, str) else None
    if preset is None:
        return filled
    is_attached = written.get("attach") is not None
    for key, value in preset.fills.items():
        if is_attached and key in _PROCESS_KEYS:
            continue
        if isinstance(value, Mapping) and isinstance(filled.get(key), Mapping):
            filled[key] = {**value, **filled[key]}
        elif filled.get(key) is None:
            filled[key] = value
    return _with_served_name(lane, filled, preset, is_own_command=written.get("command") is not None)


def _with_served_name(lane: str, filled: dict[str, Any], preset: Preset, is_own_command: bool) -> dict[str, Any]:
    """Puts the served name into the preset's command; a command of the lane's own is left alone."""
    command = preset.fills["command"]
    if is_own_command or "command" not in filled or SERVED not in command:
        return filled
    served = filled.get("served_model") or lane
    filled["served_model"] = served
    filled["command"] = [str(served) if word == SERVED else word for word in command]
    return filled
