"""A file that never grows beyond a bound, and never troubles who writes it."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import structlog

log = structlog.get_logger(__name__)

PRIVATE_FILE = 0o600
PRIVATE_FOLDER = 0o700


class RotatedFile:
    """``path`` of at most ``max_bytes``, and ``keep`` older ones beside it: ``path.1`` is the youngest.

    Deleted or renamed from outside, it is made anew; where the disk is full, what does not fit is dropped.
    """

    def __init__(self, path: Path, max_bytes: int, keep: int) -> None:
        self.path = path
        self.dropped_bytes = 0
        self._max_bytes = max(1, max_bytes)
        self._keep = keep
        self._descriptor: int | None = None
        self._is_failing = False

    @property
    def is_failing(self) -> bool:
        """Whether the last write was dropped."""
        return self._is_failing

    def write(self, content: bytes) -> None:
        """Append ``content``; never raises for what the disk does."""
        rest = memoryview(content)
        try:
            while rest:
                descriptor, room = self._opened()
                rest = rest[os.write(descriptor, rest[:room]) :]
        except OSError as error:
            self.close()
            self.dropped_bytes += len(rest)
            if not self._is_failing:
                log.warning("output_not_written", path=str(self.path), error=str(error))
            self._is_failing = True
        else:
            self._is_failing = False

    def close(self) -> None:
        """Let go of the file; a later write opens it again."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _opened(self) -> tuple[int, int]:
        """A descriptor of the file that ``path`` names now, and how many bytes still fit."""
        size = self._size()
        if size is not None and size >= self._max_bytes:
            self._rotate()
            size = None
        if size is None or self._descriptor is None:
            self.close()
            self.path.parent.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK
            self._descriptor = os.open(self.path, flags, PRIVATE_FILE)
            size = os.fstat(self._descriptor).st_size
        return self._descriptor, max(1, self._max_bytes - size)

    def _size(self) -> int | None:
        """Of the open file; None if none is open, or ``path`` names another by now."""
        if self._descriptor is None:
            return None
        opened = os.fstat(self._descriptor)
        with contextlib.suppress(OSError):
            named = self.path.stat()
            if (named.st_dev, named.st_ino) == (opened.st_dev, opened.st_ino):
                return opened.st_size
        return None

    def _rotate(self) -> None:
        """Move each file one place on; the oldest goes."""
        self.close()
        if self._keep == 0:
            self.path.unlink(missing_ok=True)
        for place in range(self._keep, 0, -1):
            older = self.path.with_name(f"{self.path.name}.{place}")
            newer = self.path if place == 1 else self.path.with_name(f"{self.path.name}.{place - 1}")
            with contextlib.suppress(FileNotFoundError):
                newer.replace(older)


def last_lines(path: Path, count: int, limit_bytes: int = 1 << 20) -> str | None:
    """The last ``count`` lines of a file, of at most ``limit_bytes``; None if it cannot be read."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - limit_bytes))
            return tail_of(file.read(), count)
    except OSError:
        return None


def tail_of(content: bytes, count: int) -> str:
    """The last ``count`` lines in ``content``."""
    lines = content.splitlines(keepends=True)
    return b"".join(lines[max(0, len(lines) - count) :]).decode(errors="replace")
