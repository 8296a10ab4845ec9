"""A grandchild: a forked process that outlives its parent's good intentions."""

from __future__ import annotations

import os
import signal

from tests.fake_worker.knobs import Knobs


def spawn(knobs: Knobs) -> int:
    """Forks a child that holds what `grandchild` says; gives its pid. It inherits the port if that is open."""
    pid = os.fork()
    if pid:
        if knobs.grandchild_pid_file is not None:
            knobs.grandchild_pid_file.write_text(str(pid))
        return pid
    _hold(knobs)
    os._exit(0)


def _hold(knobs: Knobs) -> None:
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_IGN if knobs.grandchild_ignores_term else signal.SIG_DFL)
    if knobs.grandchild_setsid:
        os.setsid()
    ballast = bytearray(b"\1") * (knobs.grandchild_mb * 1_000_000 if knobs.grandchild == "memory" else 0)
    signal.alarm(knobs.grandchild_life)
    while ballast is not None:
        signal.pause()
