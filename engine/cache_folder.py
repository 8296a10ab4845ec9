"""Where the engine keeps what it has fetched or built: one folder a machine, filled atomically."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import platformdirs

REMAINS_S = 3600.0
"""What another process has begun and not touched for so long, it will not finish: it was killed."""


def cache_folder() -> Path:
    """FRESHLANE_CACHE, or the platform's cache folder for freshlane."""
    given = os.environ.get("FRESHLANE_CACHE")
    return Path(given).expanduser() if given else platformdirs.user_cache_path("freshlane")


def build_once(folder: Path, build: Callable[[Path], None]) -> Path:
    """Return `folder`, letting `build` fill it first where it is not there.

    It is filled under another name and renamed, so a folder under its own name is whole. Two processes at once both
    build, and the one that comes second drops its copy.
    """
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    _remove_remains(folder)
    unfinished = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        build(unfinished)
        unfinished.chmod(0o755)
        unfinished.rename(folder)
    except OSError:
        if not folder.is_dir():
            raise
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return folder


def _remove_remains(folder: Path) -> None:
    for other in folder.parent.glob(f".{folder.name}-*"):
        with contextlib.suppress(OSError):
            if _age_s(other) > REMAINS_S:
                shutil.rmtree(other, ignore_errors=True)


def _age_s(folder: Path) -> float:
    """Seconds since anything in it was last written."""
    newest = max(path.stat().st_mtime for path in (folder, *folder.rglob("*")))
    return datetime.now(UTC).timestamp() - newest
