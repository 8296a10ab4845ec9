"""Ports of this machine: a free one, whether one is taken, and by whom."""

from __future__ import annotations

import contextlib
import errno
import socket
from collections.abc import Iterator

import psutil

LOOPBACK = "127.0.0.1"
LOOPBACK_OF_ANY = {"0.0.0.0": LOOPBACK, "::": "::1"}  # noqa: S104 - compared, not bound
CONNECT_TIMEOUT_S = 0.5


def free_port() -> int:
    """A port of 127.0.0.1 that nobody had a moment ago; a stranger may still take it before the worker does."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def is_taken(port: int, host: str = LOOPBACK) -> bool:
    """Whether someone listens on ``port``. May take half a second where a listener is too busy to answer.

    Connects as well as binds: macOS lets 127.0.0.1 be bound over a stranger's 0.0.0.0. An address that cannot be bound
    for another reason is taken by nobody.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as aiohttp binds: TIME_WAIT is no holder
        try:
            probe.bind((host, port))
        except OSError as error:
            return error.errno == errno.EADDRINUSE
    with socket.socket(family) as probe:
        probe.settimeout(CONNECT_TIMEOUT_S)
        try:
            probe.connect((LOOPBACK_OF_ANY.get(host, host), port))
        except TimeoutError:
            return True
        except OSError:
            return False
    return True


def holder_of(port: int) -> tuple[int, str] | None:
    """Pid and name of the process that listens on ``port``; None if nobody does, or it is another user's.

    Looks at every process of the machine: for an error's text, and off the loop.
    """
    for pid in _listeners(port):
        with contextlib.suppress(psutil.Error):
            return pid, psutil.Process(pid).name()
    return None


def _listeners(port: int) -> Iterator[int]:
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            for connection in process.net_connections("tcp"):
                if connection.status == psutil.CONN_LISTEN and connection.laddr.port == port:
                    yield process.pid
