"""The folders that the daemon writes to."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from supervisor.cli.doctor.finding import Finding, bad, doubtful, good
from supervisor.core.words import size
from supervisor.settings import Settings

SUBJECT = "state folder"
LITTLE_BYTES = 2_000_000_000


def places(settings: Settings) -> Iterator[Finding]:
    """Whether state_dir can be written to, is private, and has room."""
    folder = settings.state_dir
    above = next(path for path in (folder, *folder.parents) if path.exists())
    if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
        yield bad(SUBJECT, f"{folder} cannot be written to", f"make {above} writable for this user, or set state_dir")
        return
    yield good(SUBJECT, f"{folder}{'' if folder.exists() else ' (made at the first run)'}")
    yield from _privacy(folder)
    free = shutil.disk_usage(above).free
    if free < LITTLE_BYTES:
        remedy = "free some space, or put state_dir on another disk; logs and prefix caches need a few GB"
        yield doubtful("disk", f"{size(free)} free at {above}", remedy)
    else:
        yield good("disk", f"{size(free)} free at {above}")


def _privacy(folder: Path) -> Iterator[Finding]:
    if folder.exists() and stat.S_IMODE(folder.stat().st_mode) & 0o022:
        yield doubtful(SUBJECT, f"{folder} can be written to by other users", f"chmod 700 {folder}")
