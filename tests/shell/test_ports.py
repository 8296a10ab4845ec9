"""Ports: free, taken, and by whom."""

from __future__ import annotations

import os
import socket

import pytest

from supervisor.shell.machine.ports import free_port, holder_of, is_taken


def test_a_free_port_is_not_taken_and_has_no_holder() -> None:
    port = free_port()
    assert not is_taken(port)
    assert holder_of(port) is None


@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0"])
def test_a_listener_takes_its_port_and_is_named(address: str) -> None:
    with socket.create_server((address, 0)) as server:
        port = server.getsockname()[1]
        assert is_taken(port)
        holder = holder_of(port)
    assert holder
    assert holder[0] == os.getpid()
    assert holder[1]
    assert not is_taken(port)


def test_an_address_of_the_other_family_is_taken_only_by_who_listens_there() -> None:
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as server:
        port = server.getsockname()[1]
        assert is_taken(port, "::1")
        assert is_taken(port, "::")
    assert not is_taken(port, "::1")


def test_an_address_of_another_machine_is_taken_by_nobody_here() -> None:
    assert not is_taken(free_port(), "192.0.2.1")


def test_a_listener_with_a_full_queue_takes_its_port() -> None:
    with socket.socket() as server, socket.socket() as first, socket.socket() as second:
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        for client in (first, second):
            client.setblocking(False)
            client.connect_ex(server.getsockname())
        assert is_taken(server.getsockname()[1])


def test_a_closed_connection_in_time_wait_does_not_take_the_port() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as client:
            accepted, _ = server.accept()
            accepted.close()
            client.recv(1)
    assert not is_taken(port)
