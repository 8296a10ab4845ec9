"""What a service manager hears of the daemon: a real socket, the real messages."""

from __future__ import annotations

import os
import socket
import sys
import tempfile
from collections.abc import Iterator

import pytest

from supervisor.shell.service.notify import Notifier
from tests.waiting import wait_until


class Health:
    """As a test wants it."""

    def __init__(self) -> None:
        self.line = "1 lane: chat starting"
        self.ill: str | None = None

    def status(self) -> str:
        return self.line

    def trouble(self, watchdog_s: float) -> str | None:
        return self.ill


class Manager:
    """The other end of NOTIFY_SOCKET."""

    def __init__(self, address: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(address)
        self.socket.setblocking(False)

    def heard(self) -> list[str]:
        words: list[str] = []
        try:
            while True:
                words += self.socket.recv(4096).decode().split("\n")
        except BlockingIOError:
            return words


@pytest.fixture
def address() -> Iterator[str]:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:  # a socket's path must be short
        yield f"{folder}/notify"


@pytest.fixture
def manager(address: str) -> Iterator[Manager]:
    listening = Manager(address)
    yield listening
    listening.socket.close()


@pytest.fixture
def notifier(manager: Manager, address: str) -> Iterator[Notifier]:
    telling = Notifier({"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "10000000"})
    yield telling
    telling.close()


def test_its_variables_are_taken_out_of_the_environment() -> None:
    environment = {"NOTIFY_SOCKET": "/x", "WATCHDOG_USEC": "30000000", "WATCHDOG_PID": str(os.getpid()), "PATH": "/bin"}
    assert Notifier(environment).watchdog_s == 30.0
    assert environment == {"PATH": "/bin"}


def test_a_watchdog_that_is_another_processs_is_not_answered() -> None:
    assert Notifier({"NOTIFY_SOCKET": "/x", "WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "1"}).watchdog_s is None


async def test_while_it_starts_it_asks_for_time_and_once_it_is_up_it_says_so(
    notifier: Notifier, manager: Manager
) -> None:
    notifier.tick(100.0)
    notifier.tick(101.0)
    notifier.tick(105.0)
    heard = manager.heard()
    assert heard.count("EXTEND_TIMEOUT_USEC=20000000") == 2
    assert heard.count("STATUS=starting") == 1
    notifier.ready(Health())
    assert manager.heard() == ["READY=1", "STATUS=1 lane: chat starting"]
    notifier.tick(120.0)
    assert not any(word.startswith("EXTEND") for word in manager.heard())


async def test_the_watchdog_is_answered_at_half_its_interval_and_only_by_a_healthy_daemon(
    notifier: Notifier, manager: Manager
) -> None:
    health = Health()
    notifier.ready(health)
    manager.heard()
    for now in (100.0, 101.0, 104.9, 105.0, 109.0):
        notifier.tick(now)
    assert manager.heard().count("WATCHDOG=1") == 2
    health.ill = "no progress in chat"
    for now in (110.0, 111.0, 120.0):
        notifier.tick(now)
    assert "WATCHDOG=1" not in manager.heard()
    health.ill = None
    notifier.tick(121.0)
    assert "WATCHDOG=1" in manager.heard()


async def test_a_status_is_sent_when_it_changes(notifier: Notifier, manager: Manager) -> None:
    health = Health()
    notifier.ready(health)
    manager.heard()
    notifier.tick(100.0)
    health.line = "1 lane: chat serving"
    notifier.tick(101.0)
    notifier.tick(102.0)
    assert [word for word in manager.heard() if word.startswith("STATUS")] == ["STATUS=1 lane: chat serving"]


async def test_a_reload_is_framed_and_stopping_asks_for_time(notifier: Notifier, manager: Manager) -> None:
    with notifier.reloading():
        pass
    assert manager.heard() == []  # it is not up yet: READY would be too early
    notifier.ready(Health())
    manager.heard()
    with notifier.reloading():
        began, stamp = manager.heard()
        assert began == "RELOADING=1"
        assert stamp.removeprefix("MONOTONIC_USEC=").isdigit()
    assert manager.heard() == ["READY=1"]
    notifier.stopping()
    assert manager.heard() == ["STOPPING=1", "EXTEND_TIMEOUT_USEC=20000000"]


async def test_a_manager_that_does_not_listen_is_no_trouble(address: str) -> None:
    telling = Notifier({"NOTIFY_SOCKET": address})
    telling.ready(Health())
    telling.close()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has abstract sockets")
async def test_an_abstract_socket_is_reached() -> None:
    name = f"freshlane-test-{os.getpid()}"
    manager = Manager("\0" + name)
    telling = Notifier({"NOTIFY_SOCKET": "@" + name})
    telling.ready(Health())
    heard = await wait_until(manager.heard, 5.0, "the message")
    assert heard[0] == "READY=1"
    telling.close()
    manager.socket.close()
