"""The physical memory of a set of processes."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import sys
from collections.abc import Iterable
from pathlib import Path

import psutil

PAGE = os.sysconf("SC_PAGE_SIZE")
RUSAGE_INFO_V0 = 0
FOOTPRINT_OFFSET = 72  # rusage_info_v0: 16 bytes of uuid, seven 64-bit counters, then ri_phys_footprint


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
    """What Activity Monitor shows: with the GPU's memory, which the resident size leaves out."""
    buffer = (ctypes.c_uint64 * 64)()
    if _libproc().proc_pid_rusage(pid, RUSAGE_INFO_V0, ctypes.byref(buffer)) == 0:
        return int(buffer[FOOTPRINT_OFFSET // 8])
    with contextlib.suppress(psutil.Error):
        return int(psutil.Process(pid).memory_info().rss)
    return 0


@functools.cache
def _libproc() -> ctypes.CDLL:
    return ctypes.CDLL("/usr/lib/libproc.dylib")
