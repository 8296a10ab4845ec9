"""Where the engine keeps what it has fetched or built: one folder a machine, filled atomically."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import platformdirs


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
