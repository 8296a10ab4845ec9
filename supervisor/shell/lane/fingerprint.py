"""What a baseline belongs to: the same worker on the same machine. Anything that may change its speed changes this."""

from __future__ import annotations

import hashlib
import json
import platform
import shutil
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import psutil

from supervisor.settings import LaneSettings

ENGINE_PACKAGES = ("freshlane", "mlx", "mlx-lm")
LARGEST_READ_BYTES = 1_000_000
"""Watched files are settings; of a larger file only size and time are taken."""


def fingerprint(lane: LaneSettings, under: str | None = None) -> str:
    """Sixteen hex digits. Reads small files and asks the operating system: call it off the loop.

    ``under``: what started the daemon. A service may be given less of CPU and I/O than a terminal.
    """
    parts = [lane.fingerprint_parts(), _program(lane), _files(lane), _machine(), under]
    document = json.dumps(parts, default=str)
    return hashlib.sha256(document.encode()).hexdigest()[:16]


def _program(lane: LaneSettings) -> Any:
    if lane.is_ours:
        return {name: _version(name) for name in ENGINE_PACKAGES}
    if not lane.command:
        return None
    path = shutil.which(lane.command[0])
    return [path, _stamp(Path(path).resolve())] if path else lane.command[0]


def _files(lane: LaneSettings) -> list[Any]:
    files = list(lane.watch_files)
    model = Path(lane.model).expanduser() if lane.model else None
    if model and model.is_dir():
        files += sorted(model.glob("*"))
    return [[str(path), _stamp(path)] for path in files]


def _stamp(path: Path) -> Any:
    try:
        status = path.stat()
        if path.is_file() and status.st_size <= LARGEST_READ_BYTES:
            return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        return type(error).__name__
    return [status.st_size, status.st_mtime_ns]


def _machine() -> list[Any]:
    return [platform.machine(), platform.release(), psutil.cpu_count(), psutil.virtual_memory().total, sys.version]


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
