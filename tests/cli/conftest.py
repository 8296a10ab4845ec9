"""Commands as a person runs them: real processes, and a server on a real port that answers as the daemon does."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from tests.cli.forked import Ended, run_command
from tests.cli.stand_in import TOKEN, StandIn

REPOSITORY = Path(__file__).resolve().parents[2]


Run = Callable[..., Awaitable[Ended]]


@pytest.fixture
async def stand_in() -> AsyncIterator[StandIn]:
    server = StandIn()
    await server.start()
    yield server
    await server.close()


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A home of its own, and nothing of freshlane's in the environment."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("FRESHLANE", "XDG_", "NO_COLOR"))}
    return {**kept, "HOME": str(tmp_path), "PYTHONPATH": str(REPOSITORY), "TMPDIR": str(tmp_path), "TZ": "UTC"}


def at_url(url: str) -> dict[str, str]:
    """Address and key from the environment: then no lanes.yaml is read."""
    return {"FRESHLANE_URL": url, "FRESHLANE_API_KEY": TOKEN}


async def start_command(
    *arguments: str, environment: dict[str, str], folder: Path, program: str | None = None
) -> asyncio.subprocess.Process:
    """freshlane with ``arguments``; or Python with a ``program``."""
    command = ("-c", program) if program is not None else ("-m", "supervisor")
    return await asyncio.create_subprocess_exec(
        sys.executable,
        *command,
        *arguments,
        env=environment,
        cwd=folder,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


@pytest.fixture
def freshlane(tmp_path: Path, environment: dict[str, str]) -> Run:
    """``ended = await freshlane("status", url=..., env={...})``; a traceback fails the test, whatever it is about."""

    async def run(*arguments: str, url: str | None = None, env: dict[str, str] | None = None) -> Ended:
        full = {**environment, **(at_url(url) if url else {}), **(env or {})}
        ended = await run_command(arguments, full, tmp_path)
        assert "Traceback" not in ended.out + ended.err, ended
        return ended

    return run
