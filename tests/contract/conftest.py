"""Who must keep the worker protocol: the fake worker, and the real engine with the real model."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import pytest

from tests.conftest import find_free_port
from tests.fakes import fake_command, fill_port
from tests.waiting import wait_until

ENGINE_READY_S = 110


@dataclass(frozen=True)
class Kind:
    """A worker to be: how it starts, and the name of its model."""

    name: str
    command: list[str]
    model: str
    token_flags: tuple[str, ...] = ()


FAKE = Kind("fake", fake_command(tok_s=200), "fake", ("--require-token",))
ENGINE = Kind("engine", [sys.executable, "-m", "engine", "--model", "smollm2-135m", "--port", "{port}"], "smollm2-135m")


@dataclass
class Worker:
    """A started worker and how to speak with it."""

    kind: Kind
    process: subprocess.Popen[bytes]
    port: int
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def answers_health(self) -> bool:
        if self.process.poll() is not None:
            raise AssertionError(f"the {self.kind.name} has ended with {self.process.returncode}")
        patience = aiohttp.ClientTimeout(total=5)
        async with (
            aiohttp.ClientSession(timeout=patience, headers=self.headers) as http,
            http.get(f"{self.url}/health") as answer,
        ):
            return answer.status == 200

    def end(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(10)


def start(kind: Kind, *flags: str, **env: str) -> Worker:
    port = find_free_port()
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONASYNCIODEBUG"} | env
    command = [*fill_port(kind.command, port), *flags]
    return Worker(kind, subprocess.Popen(command, env=environment, start_new_session=True), port)


@pytest.fixture(scope="session", params=["fake", pytest.param("engine", marks=pytest.mark.model)])
def kind(request: pytest.FixtureRequest) -> Kind:
    return {"fake": FAKE, "engine": ENGINE}[request.param]


@pytest.fixture(scope="session")
def shared(kind: Kind) -> Iterator[Worker]:
    """One worker of each kind for all tests that leave it as it was: the engine takes seconds to load."""
    started = start(kind)
    yield started
    started.end()


@pytest.fixture
async def worker(shared: Worker) -> Worker:
    """A ready worker, shared with other tests."""
    await wait_until(shared.answers_health, ENGINE_READY_S, f"health of the {shared.kind.name}")
    return shared


@pytest.fixture
def own_worker(kind: Kind) -> Iterator[Callable[..., Worker]]:
    """`own_worker(NAME=value)`: a worker for this test alone, with more environment; not yet ready."""
    started: list[Worker] = []

    def begin(**env: str) -> Worker:
        flags = kind.token_flags if "FRESHLANE_WORKER_TOKEN" in env else ()
        started.append(start(kind, *flags, **env))
        return started[-1]

    yield begin
    for one in started:
        one.end()


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=60)) as session:
        yield session


def chat(worker: Worker, text: str, **more: Any) -> dict[str, Any]:
    """The body of a chat request, greedy."""
    messages = [{"role": "user", "content": text}]
    return {"model": worker.kind.model, "messages": messages, "temperature": 0, **more}
