"""The memory that a container or a unit's limit leaves us, by cgroups of version 2 and of version 1."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
MEMBERSHIP = Path("/proc/self/cgroup")
NO_LIMIT_BYTES = 2**60
"""Version 1 writes the largest number of pages there is where it means none."""


@dataclass(frozen=True, slots=True)
class Files:
    """What a version calls them. ``page_cache``: the field of ``memory.stat`` that says how much of it gives way."""

    limits: tuple[str, ...]
    used: str
    page_cache: str


VERSION_2 = Files(("memory.max", "memory.high"), "memory.current", "inactive_file")
VERSION_1 = Files(("memory.limit_in_bytes",), "memory.usage_in_bytes", "total_inactive_file")


class Cgroup:
    """Our own group and those above it: each may have a limit.

    In a container the path that we are told is often the host's, and not there; what its top folder says is meant.
    """

    def __init__(self, root: Path = ROOT, membership: Path = MEMBERSHIP) -> None:
        self._folders: list[tuple[Path, Files]] = []
        with contextlib.suppress(OSError, ValueError):
            for line in membership.read_text().splitlines():
                _, controllers, name = line.split(":", 2)
                if "memory" in controllers.split(","):
                    self._add(root / "memory", name, VERSION_1)
                elif not controllers:
                    self._add(root, name, VERSION_2)

    def limit_bytes(self) -> int | None:
        """The smallest limit; None if there is none."""
        return min((limit for limit, _ in self._limited()), default=None)

    def available_bytes(self) -> int | None:
        """What may still be used before the first limit binds; None without a limit."""
        return min((max(0, limit - used) for limit, used in self._limited()), default=None)

    def _add(self, top: Path, name: str, files: Files) -> None:
        folder = top / name.strip("/")
        folders = (folder, *(above for above in folder.parents if above.is_relative_to(top)))
        self._folders += [(each, files) for each in folders]

    def _limited(self) -> list[tuple[int, int]]:
        """The limit of each group that has one, and what it uses."""
        limits = [(_limit(folder, files), folder, files) for folder, files in self._folders]
        return [(limit, _used(folder, files)) for limit, folder, files in limits if limit is not None]


def _limit(folder: Path, files: Files) -> int | None:
    found = [limit for name in files.limits if (limit := _number(folder / name)) is not None]
    return min((limit for limit in found if limit < NO_LIMIT_BYTES), default=None)


def _used(folder: Path, files: Files) -> int:
    """Less the page cache, which gives way."""
    used = _number(folder / files.used) or 0
    with contextlib.suppress(OSError, ValueError):
        words = (folder / "memory.stat").read_text().split()
        fields = dict(zip(words[::2], words[1::2], strict=False))
        used -= int(fields.get(files.page_cache, 0))
    return max(0, used)


def _number(path: Path) -> int | None:
    """None for ``max``, and where there is no such file."""
    with contextlib.suppress(OSError, ValueError):
        return int(path.read_text())
    return None
