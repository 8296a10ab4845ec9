"""What a baseline belongs to: the same worker on the same machine. Anything that may change its speed changes this."""

from __future__ import annotations

import hashlib
import json
import platform
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil

from supervisor.settings import LaneSettings
from supervisor.shell.lane.versions import versions
from supervisor.shell.machine import darwin
from supervisor.shell.machine.strain import low_power

LARGEST_READ_BYTES = 1_000_000
"""Watched files are settings; of a larger file only size and time are taken."""


def fingerprint_parts(lane: LaneSettings, under: str | None = None) -> dict[str, str]:
    """What a rate depends on, by its name in words, each as a digest; what is not there is left out.

    Reads small files and asks the operating system: call it off the loop. ``under``: what started the daemon. A service
    may be given less of CPU and I/O than a terminal.
    """
    parts = {
        **lane.fingerprint_parts(),
        **_program(lane),
        **_files(lane),
        **_machine(),
        "what started freshlane": under,
    }
    return {name: _digest(value) for name, value in parts.items() if value not in (None, [], {})}


def fingerprint_of(parts: Mapping[str, str]) -> str:
    """Sixteen hex digits for all of it."""
    return _digest(sorted(parts.items()))


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, default=str).encode()).hexdigest()[:16]


def _program(lane: LaneSettings) -> dict[str, Any]:
    if lane.is_ours:
        return _versions(lane)
    if not lane.command:
        return {}
    path = shutil.which(lane.command[0])
    return {"the program": [path, _stamp(Path(path).resolve())] if path else lane.command[0], **_versions(lane)}


def _versions(lane: LaneSettings) -> dict[str, str]:
    return {f"version of {name}": version for name, version in versions(lane).items()}


def _files(lane: LaneSettings) -> dict[str, Any]:
    files = list(lane.watch_files)
    model = Path(lane.model).expanduser() if lane.model else None
    if model and model.is_dir():
        files += sorted(model.glob("*"))
    return {f"the file {path}": _stamp(path) for path in files}


def _stamp(path: Path) -> Any:
    try:
        status = path.stat()
        if path.is_file() and status.st_size <= LARGEST_READ_BYTES:
            return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        return type(error).__name__
    return [status.st_size, status.st_mtime_ns]


def _machine() -> dict[str, Any]:
    told = {
        "the processor": platform.machine(),
        "the operating system": platform.release(),
        "the number of CPUs": psutil.cpu_count(),
        "the size of memory": psutil.virtual_memory().total,
        "the version of Python": sys.version,
    }
    if sys.platform == "darwin":
        told |= {"the limit of wired memory": darwin.wired_limit_mb(), "low power mode": low_power()}
    return told
