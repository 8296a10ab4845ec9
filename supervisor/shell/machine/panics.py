"""Whether this machine went down in the GPU's driver lately: macOS leaves a report of each panic.

Two MLX streams and a prompt cache that is filled and emptied in turn have panicked machines within two minutes.
Canaries with prompts of their own are just that, so after such a panic they wait for a while.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path("/Library/Logs/DiagnosticReports")
MARKS = (b"IOGPUMemory", b"prepare count underflow", b"IOGPUGroupMemory", b"IOGPUFamily")
LARGEST_READ_BYTES = 2_000_000
RECENT_S = 24 * 3600.0


@dataclass(frozen=True, slots=True)
class Panic:
    """A report: its file, when it was written (Unix time), and the driver's name in it that gave it away."""

    path: Path
    wall: float
    mark: str


def recent_gpu_panic(now_wall: float, folder: Path = FOLDER, within_s: float = RECENT_S) -> Panic | None:
    """The newest of them; None if there is none, or the reports may not be read. Reads files: call it off the loop."""
    found = None
    for path in _reports(folder):
        with contextlib.suppress(OSError):
            wall = path.stat().st_mtime
            if now_wall - wall > within_s or (found and found.wall >= wall):
                continue
            with path.open("rb") as file:
                content = file.read(LARGEST_READ_BYTES)
            mark = next((mark for mark in MARKS if mark in content), None)
            found = Panic(path, wall, mark.decode()) if mark else found
    return found


def _reports(folder: Path) -> list[Path]:
    with contextlib.suppress(OSError):
        return sorted(folder.glob("*.panic"))
    return []
