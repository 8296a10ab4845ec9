"""What systemd runs when the daemon has ended (ExecStopPost): waits until the workers have ended as well.

It runs on its own, as ``python -I -S settle.py``: standard library only. A daemon that died leaves each worker to its
tether, which needs a while; until then the unit is not to count as stopped, nor to be started again. A daemon that did
not end within its time is killed here, for systemd is told to send no SIGKILL: it would send it to the workers as well.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal

POLL_S = 0.1
DAEMON_PID = "MAINPID"
"""Set by systemd if the daemon still lives."""


def main() -> None:
    """Until nobody else is in this control group; systemd's TimeoutStopSec is the deadline."""
    daemon = os.environ.get(DAEMON_PID, "")
    if daemon.isdigit():
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(daemon), signal.SIGKILL)
    own = group_of("self")
    while any(group_of(name) == own for name in others()):
        select.select([], [], [], POLL_S)


def others() -> list[str]:
    """The pids of all processes but this one."""
    own = str(os.getpid())
    return [name for name in os.listdir("/proc") if name.isdigit() and name != own]  # noqa: PTH208 - starts faster


def group_of(name: str) -> bytes | None:
    """The control groups of a process; None if it is gone, or has ended and waits to be collected."""
    try:
        with open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123
            state = file.read().rpartition(b")")[2].split()[0]
        with open(f"/proc/{name}/cgroup", "rb") as file:  # noqa: PTH123
            return None if state in (b"Z", b"X") else file.read()
    except OSError:
        return None


if __name__ == "__main__":
    main()
