"""The memory that a container or a unit's limit leaves us, by cgroups of version 2."""

from __future__ import annotations

import contextlib
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
MEMBERSHIP = Path("/proc/self/cgroup")


class Cgroup:
    """Our own group and those above it: each may have a limit."""

    def __init__(self, root: Path = ROOT, membership: Path = MEMBERSHIP) -> None:
        self._folders: list[Path] = []
        with contextlib.suppress(OSError, IndexError):
            name = membership.read_text().split("::", 1)[1].split("\n")[0].strip("/")
            folder = root / name
            self._folders = [folder, *(above for above in folder.parents if above.is_relative_to(root))]

    def limit_bytes(self) -> int | None:
        """The smallest limit; None if there is none."""
        return min((limit for limit, _ in self._limited()), default=None)

    def available_bytes(self) -> int | None:
        """What may still be used before the first limit binds; None without a limit."""
        return min((max(0, limit - _used(folder)) for limit, folder in self._limited()), default=None)

    def _limited(self) -> list[tuple[int, Path]]:
        limits = [(_number(folder / "memory.max"), folder) for folder in self._folders]
        return [(limit, folder) for limit, folder in limits if limit is not None]


def _used(folder: Path) -> int:
    """Less the page cache, which gives way."""
    used = _number(folder / "memory.current") or 0
    with contextlib.suppress(OSError, ValueError):
        words = (folder / "memory.stat").read_text().split()
        fields = dict(zip(words[::2], words[1::2], strict=False))
        used -= int(fields.get("inactive_file", 0))
    return max(0, used)


def _number(path: Path) -> int | None:
    """None for ``max``, and where there is no such file."""
    with contextlib.suppress(OSError, ValueError):
        return int(path.read_text())
    return None
