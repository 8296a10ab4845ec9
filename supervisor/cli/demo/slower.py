"""Slow a process from outside: stop it and let it go on, by turns, so that it gets only so much processor time.

A program of its own (``python -m supervisor.cli.demo.slower PID CORES``): nothing in the slowed process or in the
daemon knows of it. It ends at the end of its standard input, so it goes with whoever started it, and always leaves the
process running.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time

TURN_S = 0.008 if sys.platform == "darwin" else 0.020
"""Processor seconds in one turn: short, and on macOS shorter, lest a GPU with work under way times out."""
LOOK_EVERY_S = 0.005


def cpu_seconds(pid: int) -> float:
    """Processor time that the process has used. Raises ProcessLookupError when it is gone."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            return time.clock_gettime(~pid << 3 | 2)  # what clock_getcpuclockid(3) gives; /proc counts in 10 ms
        raise ProcessLookupError(pid)
    import psutil  # noqa: PLC0415 - only where there is no such clock

    try:
        times = psutil.Process(pid).cpu_times()
    except psutil.NoSuchProcess as error:
        raise ProcessLookupError(pid) from error
    return float(times.user + times.system)


def slow(pid: int, cores: float, ends: int) -> None:
    """Until descriptor ``ends`` can be read, give ``pid`` no more than ``cores`` processor seconds a second.

    It is the processor time that counts: on a busy machine a process that has just been stopped is served first, and
    would hardly be slower for it.
    """
    is_stopped, saved_s = False, TURN_S
    seen_at, seen_s = time.monotonic(), cpu_seconds(pid)
    try:
        while not select.select([ends], [], [], LOOK_EVERY_S)[0]:
            now, used_s = time.monotonic(), cpu_seconds(pid)
            saved_s = min(saved_s + cores * (now - seen_at) - (used_s - seen_s), TURN_S)
            seen_at, seen_s = now, used_s
            if is_stopped and saved_s >= TURN_S:
                os.kill(pid, signal.SIGCONT)
                is_stopped = False
            elif not is_stopped and saved_s <= 0:
                os.kill(pid, signal.SIGSTOP)
                is_stopped = True
    except ProcessLookupError:
        return
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def main() -> None:
    """Slow the process that the command line names; any ending signal is turned into an orderly end."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(0))
    sys.stdout.write("from now on\n")
    sys.stdout.flush()
    with contextlib.suppress(ProcessLookupError):
        slow(int(sys.argv[1]), float(sys.argv[2]), sys.stdin.fileno())


if __name__ == "__main__":
    main()
