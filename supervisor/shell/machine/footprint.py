"""The physical memory of a set of processes."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable
from pathlib import Path

import psutil

from supervisor.shell.machine import darwin

PAGE = os.sysconf("SC_PAGE_SIZE")


def of(pids: Iterable[int]) -> int:
    """Bytes used by all of ``pids`` together; processes that are gone count 0."""
    return sum(map(_of_darwin, pids)) if sys.platform == "darwin" else _of_linux(pids)


def _of_linux(pids: Iterable[int]) -> int:
    """What is each one's own, and the largest of what each shares.

    The kernel could share it out exactly (PSS), but walks every page for that: a tenth of a second for a big model.
    """
    own, shared = 0, 0
    for pid in pids:
        with contextlib.suppress(OSError, IndexError):
            fields = Path(f"/proc/{pid}/statm").read_bytes().split()
            resident, its_shared = int(fields[1]), int(fields[2])
            own += resident - its_shared
            shared = max(shared, its_shared)
    return (own + shared) * PAGE


def _of_darwin(pid: int) -> int:
    usage = darwin.usage_of(pid)
    if usage:
        return usage.footprint_bytes
    with contextlib.suppress(psutil.Error):
        return int(psutil.Process(pid).memory_info().rss)
    return 0
