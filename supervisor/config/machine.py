"""What depends on this machine: programs and folders that a lane names. A warning in `check`, an error in `run`."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from supervisor.config.problems import Problem
from supervisor.settings import LaneSettings, Settings


def machine_warnings(settings: Settings) -> list[Problem]:
    """What ``settings`` name that is not on this machine; each with its lane."""
    return [problem for lane in settings.lanes.values() for problem in lane_machine_warnings(lane)]


def lane_machine_warnings(lane: LaneSettings) -> list[Problem]:
    """The same for one lane; a lane with any cannot start."""
    return [Problem(("lanes", lane.name, *key), text) for key, text in _missing(lane)]


def _missing(lane: LaneSettings) -> Iterator[tuple[tuple[str, ...], str]]:
    for key, command in (("command", lane.command), ("restart_command", lane.restart_command)):
        if command and "{" not in command[0] and _program(command[0], lane) is None:
            where = "does not exist or may not be run" if "/" in command[0] else "is not on PATH"
            yield (key,), f'program "{command[0]}" {where}; install it, or write its full path'
    if lane.cwd is not None and "{" not in str(lane.cwd) and not lane.cwd.is_dir():
        yield ("cwd",), f"folder {lane.cwd} does not exist; make it, or name another"
    if lane.model is not None and lane.model.startswith("/") and not Path(lane.model).exists():
        yield ("model",), f"{lane.model} does not exist; write a hub id, or the path of a model"
    draft = lane.speculation.draft
    if lane.is_ours and draft is not None and not draft.is_dir():
        yield ("speculation", "draft"), f"folder {draft} does not exist; name that of a draft model"


def _program(name: str, lane: LaneSettings) -> str | None:
    """Where the worker's own PATH and folder lead; None if nowhere."""
    if "/" in name:
        path = Path(name).expanduser()
        return shutil.which(lane.cwd / path if lane.cwd else path)
    return shutil.which(name, path=lane.env.get("PATH", os.environ.get("PATH", os.defpath)))
