"""What systemd is told of the daemon (sd_notify): it is up, how its lanes are, it lives, it needs time."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from typing import Protocol

import structlog

log = structlog.get_logger(__name__)

TICK_S = 1.0
EXTEND_EVERY_S = 5.0
EXTEND_BY_S = 20.0
"""More than two extensions that are late."""
LONGEST_STATUS = 500
VARIABLES = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID")


class Health(Protocol):
    """What the notifier asks of the daemon."""

    def status(self) -> str:
        """All lanes in one line."""

    def trouble(self, watchdog_s: float) -> str | None:
        """Why systemd, which waits for ``watchdog_s``, should rather restart the daemon; None if it is well."""


class Notifier:
    """Says nothing where no service manager listens. ``run`` is to be a task of the daemon's own loop."""

    def __init__(self, environment: MutableMapping[str, str] = os.environ) -> None:
        """Takes systemd's variables out of ``environment``: they are not the workers' business."""
        address, watchdog_us, watchdog_pid = (environment.pop(name, "") for name in VARIABLES)
        self._address = "\0" + address[1:] if address.startswith("@") else address
        is_ours = watchdog_pid in ("", str(os.getpid()))
        self.watchdog_s = int(watchdog_us) / 1e6 if watchdog_us.isdigit() and is_ours else None
        self._socket: socket.socket | None = None
        self._health: Health | None = None
        self._needs_time = True
        self._said_status = ""
        self._said_trouble: str | None = None
        self._extended_at = self._petted_at = float("-inf")

    @property
    def is_listened_to(self) -> bool:
        """Whether there is a service manager to tell."""
        return bool(self._address)

    async def run(self) -> None:
        """Ask for time while the daemon starts or drains, tell how the lanes are, and answer the watchdog."""
        while self.is_listened_to:
            self.tick(time.monotonic())
            await asyncio.sleep(TICK_S if self.watchdog_s is None else min(TICK_S, self.watchdog_s / 8))

    def tick(self, now: float) -> None:
        """Send what is due at the monotonic moment ``now``."""
        words = [*self._more_time(now), *self._status(), *self._watchdog(now)]
        if words:
            self.send(*words)

    def ready(self, health: Health) -> None:
        """The listener is up and the lanes are being started."""
        self._health, self._needs_time = health, False
        self.send("READY=1", *self._status())

    def stopping(self) -> None:
        """Draining begins; time is asked for until the end."""
        self._needs_time = True
        self.send("STOPPING=1", *self._more_time(time.monotonic()))

    @contextmanager
    def reloading(self) -> Iterator[None]:
        """While lanes.yaml is read again; a daemon that is not up yet, or goes down, does not say so."""
        if self._needs_time:
            yield
            return
        self.send("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")
        try:
            yield
        finally:
            if not self._needs_time:
                self.send("READY=1")

    def close(self) -> None:
        """Nothing more is to be said."""
        if self._socket:
            self._socket.close()
            self._socket = None
        self._address = ""

    def send(self, *words: str) -> None:
        """One message. Never waits and never fails: a manager that does not read must not hold up the daemon."""
        if not self._address:
            return
        try:
            if self._socket is None:
                self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
                self._socket.setblocking(False)
            self._socket.sendto("\n".join(words).encode(), self._address)
        except OSError as error:
            log.warning("service_manager_not_told", error=str(error), words=words)

    def _more_time(self, now: float) -> list[str]:
        if not self._needs_time or now < self._extended_at + EXTEND_EVERY_S:
            return []
        self._extended_at = now
        return [f"EXTEND_TIMEOUT_USEC={int(EXTEND_BY_S * 1e6)}"]

    def _status(self) -> list[str]:
        status = self._health.status().replace("\n", " ")[:LONGEST_STATUS] if self._health else "starting"
        if status == self._said_status:
            return []
        self._said_status = status
        return [f"STATUS={status}"]

    def _watchdog(self, now: float) -> list[str]:
        """At half the interval. While something is wrong not at all: it is looked at every tick until systemd acts."""
        if self.watchdog_s is None or now < self._petted_at + self.watchdog_s / 2:
            return []
        trouble = self._health.trouble(self.watchdog_s) if self._health else None
        if trouble:
            if trouble != self._said_trouble:
                log.error("watchdog_not_answered", trouble=trouble, remedy="systemd restarts the daemon if it stays so")
            self._said_trouble = trouble
            return []
        self._said_trouble = None
        self._petted_at = now
        return ["WATCHDOG=1"]
