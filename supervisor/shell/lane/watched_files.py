"""Files that change a worker's speed without a restart: seen to change while it lives."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

Stamp = tuple[int, int, int] | None


class WatchedFiles:
    """Of one lane; by size, time and inode alone. Whether their content is another one the fingerprint tells."""

    def __init__(self) -> None:
        self._seen: dict[Path, Stamp] = {}

    async def changed(self, files: Sequence[Path]) -> list[Path]:
        """Those that are not as they were at the last look."""
        if not files:
            return []
        before, self._seen = self._seen, await asyncio.to_thread(lambda: {path: _stamp(path) for path in files})
        return [path for path, stamp in self._seen.items() if path in before and before[path] != stamp]


def _stamp(path: Path) -> Stamp:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns, status.st_ino
