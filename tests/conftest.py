"""What every test may ask for: a free port, and real workers that end surely."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import random
import signal
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import hypothesis
import pytest

from tests.fakes import fake_command, fill_port
from tests.waiting import wait_until

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # under nohup or a shell's `&`, and then so would be our children
    signal.signal(signal.SIGINT, signal.default_int_handler)

hypothesis.settings.register_profile("patient", deadline=None)  # a busy machine is no fault of an example
hypothesis.settings.load_profile("patient")

PORTS = itertools.cycle(range(20_000, 32_000))
"""Below the ephemeral ports of Linux and macOS: no outgoing connection takes one between its choice and its use."""
for _ in range(random.randrange(12_000)):
    next(PORTS)


def find_free_port() -> int:
    """A port of 127.0.0.1 that was free a moment ago; another one at each call."""
    for port in PORTS:
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("there are always more ports")


def port_is_open(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def free_port() -> int:
    return find_free_port()


@dataclass(frozen=True)
class RunningWorker:
    """A worker process in its own group, listening on `port`."""

    process: asyncio.subprocess.Process
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        return self.process.pid

    async def end(self) -> None:
        """Kills the whole group and waits for the process."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        await asyncio.wait_for(self.process.wait(), 10)


FakeWorkerFactory = Callable[..., Awaitable[RunningWorker]]


async def start_worker(
    command: list[str], port: int, env: dict[str, str] | None = None, ready_s: float | None = 20.0
) -> RunningWorker:
    """Starts `command` in its own group; waits for its port unless `ready_s` is None. Its output goes to ours."""
    process = await asyncio.create_subprocess_exec(
        *fill_port(command, port), env={**os.environ, **(env or {})}, start_new_session=True
    )
    worker = RunningWorker(process, port)
    if ready_s is not None:
        try:
            await wait_until(
                lambda: port_is_open(port) or process.returncode is not None, ready_s, f"port {port} of a worker"
            )
        except BaseException:
            await worker.end()
            raise
    return worker


@pytest.fixture
async def fake_worker() -> AsyncIterator[FakeWorkerFactory]:
    """`worker = await fake_worker(tok_s=60, env={...}, ready_s=None)`: a started fake worker; all end with the test."""
    running: list[RunningWorker] = []

    async def start(
        *, port: int | None = None, env: dict[str, str] | None = None, ready_s: float | None = 20.0, **knobs: Any
    ) -> RunningWorker:
        worker = await start_worker(fake_command(**knobs), port or find_free_port(), env, ready_s)
        running.append(worker)
        return worker

    yield start
    for worker in running:
        await worker.end()
