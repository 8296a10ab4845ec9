"""What macOS tells through its own libraries: the footprint of a process, when it started, how hot the machine is.

By the headers of macOS (libproc.h, sys/resource.h, sys/sysctl.h, notify.h). Off macOS nothing here is called.
"""

from __future__ import annotations

import ctypes
import functools
from dataclasses import dataclass

RUSAGE_INFO_V0 = 0
# rusage_info_v0 in words of 8 bytes: two of uuid, seven counters, then these two.
FOOTPRINT, STARTED = 9, 10
ROOM_WORDS = 64

THERMAL_LEVEL = b"com.apple.system.thermalpressurelevel"
THERMAL_WORDS = ("nominal", "moderate", "heavy", "trapping", "sleeping")

PRESSURE_LEVEL = b"kern.memorystatus_vm_pressure_level"
WIRED_LIMIT = b"iogpu.wired_limit_mb"
COMPRESSED = b"vm.compressor_bytes_used"
PRESSURE_WORDS = {1: "normal", 2: "warning", 4: "critical"}


@dataclass(frozen=True, slots=True)
class Usage:
    """Of one living process."""

    footprint_bytes: int
    """As Activity Monitor shows it: with the GPU's memory, which the resident size leaves out."""
    started: int
    """In ticks of a clock that nobody can set."""


def usage_of(pid: int) -> Usage | None:
    """None if the process is gone, or another user's."""
    words = (ctypes.c_uint64 * ROOM_WORDS)()
    if _libproc().proc_pid_rusage(ctypes.c_int(pid), ctypes.c_int(RUSAGE_INFO_V0), ctypes.byref(words)) != 0:
        return None
    return Usage(int(words[FOOTPRINT]), int(words[STARTED]))


def thermal_pressure() -> str | None:
    """How far the machine slows itself down because it is hot; None if it does not tell."""
    token = _thermal_token()
    level = ctypes.c_uint64()
    if token is None or _system().notify_get_state(ctypes.c_int(token), ctypes.byref(level)) != 0:
        return None
    return THERMAL_WORDS[min(level.value, len(THERMAL_WORDS) - 1)]


def memory_pressure() -> str | None:
    """``normal``, ``warning`` or ``critical``, as the kernel tells programs; None if it does not."""
    level = _kernel_number(PRESSURE_LEVEL)
    return None if level is None else PRESSURE_WORDS.get(level)


def wired_limit_mb() -> int | None:
    """How much memory the GPU may wire, 0 for the system's own choice; None if the kernel does not tell."""
    return _kernel_number(WIRED_LIMIT)


def compressed_bytes() -> int | None:
    """Memory that holds compressed pages; None if the kernel does not tell."""
    return _kernel_number(COMPRESSED, ctypes.c_uint64())


def _kernel_number(name: bytes, number: ctypes.c_int32 | ctypes.c_uint64 | None = None) -> int | None:
    """``number`` is the shape in which the kernel gives it; 32 bits with a sign, if not said otherwise."""
    number = ctypes.c_int32() if number is None else number
    size = ctypes.c_size_t(ctypes.sizeof(number))
    refused = _system().sysctlbyname(name, ctypes.byref(number), ctypes.byref(size), None, ctypes.c_size_t(0))
    return None if refused else number.value


@functools.cache
def _thermal_token() -> int | None:
    token = ctypes.c_int()
    refused = _system().notify_register_check(THERMAL_LEVEL, ctypes.byref(token))
    return None if refused else token.value


@functools.cache
def _libproc() -> ctypes.CDLL:
    return ctypes.CDLL("/usr/lib/libproc.dylib")


@functools.cache
def _system() -> ctypes.CDLL:
    return ctypes.CDLL("/usr/lib/libSystem.dylib")
