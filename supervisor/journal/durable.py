"""Bytes that survive a power cut: written whole or not at all."""

from __future__ import annotations

import contextlib
import fcntl
import os
import sys
from collections.abc import Iterator
from pathlib import Path

PRIVATE_FILE = 0o600
PRIVATE_FOLDER = 0o700


def sync(descriptor: int) -> None:
    """Force a file to the medium; on macOS plain fsync stops at the drive's own cache."""
    if sys.platform == "darwin":
        fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
    else:
        os.fsync(descriptor)


def sync_folder(folder: Path) -> None:
    """Force the names in ``folder`` to the medium."""
    with opened(folder, os.O_RDONLY) as descriptor:
        os.fsync(descriptor)


@contextlib.contextmanager
def opened(path: Path, flags: int) -> Iterator[int]:
    """A descriptor for the length of a block; a file that this makes is private."""
    descriptor = os.open(path, flags | os.O_CLOEXEC, PRIVATE_FILE)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def write_all(descriptor: int, content: bytes) -> None:
    """Write every byte: a full disk may take some of them before it says so."""
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def replace_file(path: Path, content: bytes) -> None:
    """Make ``path`` hold ``content``: a reader, also after a crash, sees the old or the new, never a part."""
    path.parent.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.new")
    try:
        with opened(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) as descriptor:
            write_all(descriptor, content)
            sync(descriptor)
        unfinished.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            unfinished.unlink()
        raise
    sync_folder(path.parent)


def remove_file(path: Path) -> None:
    """Make ``path`` not be there."""
    try:
        path.unlink()
    except FileNotFoundError:
        return
    sync_folder(path.parent)
