"""Slow a process from outside: stop it and let it go on, by turns, so that it gets only a share of the time.

A program of its own (``python -m supervisor.cli.demo.slower PID FACTOR``): nothing in the slowed process or in the
daemon knows of it. It ends at the end of its standard input, so it goes with whoever started it, and always leaves the
process running. Standard library only, and little of it.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time

RUN_S = 0.010 if sys.platform == "darwin" else 0.040
"""One turn of running. On a busy machine a process that has just been stopped is served first, so turns are not too
short; on macOS they are, lest a GPU with work under way times out.
"""


def slow(pid: int, factor: float, ends: int) -> None:
    """Until descriptor ``ends`` can be read, give ``pid`` one part in ``factor`` of the time.

    Turns come late on a busy machine, so the next stop makes up for how long it has really run.
    """
    began, stopped_s = time.monotonic(), 0.0
    try:
        while not _is_readable(ends, RUN_S):
            stopped_at = time.monotonic()
            os.kill(pid, signal.SIGSTOP)
            ran_s = stopped_at - began - stopped_s
            _is_readable(ends, max(ran_s * (factor - 1.0) - stopped_s, 0.0))
            os.kill(pid, signal.SIGCONT)
            stopped_s += time.monotonic() - stopped_at
    except ProcessLookupError:
        return
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def _is_readable(descriptor: int, within_s: float) -> bool:
    return bool(select.select([descriptor], [], [], within_s)[0])


def main() -> None:
    """Slow the process that the command line names; any ending signal is turned into an orderly end."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(0))
    slow(int(sys.argv[1]), float(sys.argv[2]), sys.stdin.fileno())


if __name__ == "__main__":
    main()
