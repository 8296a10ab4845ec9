"""The tether: whatever happens to the daemon, at any moment, no worker stays that may not."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import pytest

from supervisor.shell.worker import family, tether
from tests.shell.workers import PARENT_OF_A_SETSID_CHILD, SLEEPER, STUBBORN
from tests.waiting import wait_until

ROOT = Path(__file__).parents[2]
IMPORTING = "import json, ast, logging, asyncio; print('up', flush=True); import time; time.sleep(600)"


def naming(folder: Path) -> list[int]:
    """Living processes that have `folder` in their command, as every worker of these tests has."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if any(str(folder) in word for word in process.cmdline()) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
    return found


@asynccontextmanager
async def lone_daemon(
    folder: Path, code: str, *, stop_timeout_s: float = 5.0, may_kill: bool = True
) -> AsyncIterator[asyncio.subprocess.Process]:
    """A daemon that has said `ready` and begins to spawn; it and its worker are gone at the end."""
    command = [sys.executable, "-m", "tests.shell.lone_daemon", str(folder), str(stop_timeout_s), str(may_kill), code]
    daemon = await asyncio.create_subprocess_exec(
        *command, cwd=ROOT, stdout=asyncio.subprocess.PIPE, start_new_session=True
    )
    try:
        await asyncio.wait_for(said(daemon, "ready"), 10)
        yield daemon
    finally:
        for pid in naming(folder):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        await daemon.communicate()


async def said(daemon: asyncio.subprocess.Process, word: str) -> int:
    """Waits for a line that begins with `word`; the number behind it, or 0."""
    assert daemon.stdout
    first, *rest = (await daemon.stdout.readline()).decode().split()
    assert first == word
    return int(rest[0]) if rest else 0


async def kill(daemon: asyncio.subprocess.Process) -> None:
    daemon.kill()
    await daemon.wait()


async def test_a_daemon_killed_at_any_moment_of_a_start_leaves_no_worker(tmp_path: Path) -> None:
    for round_ in range(10):
        folder = tmp_path / f"round-{round_}"
        async with lone_daemon(folder, IMPORTING) as daemon:
            await asyncio.sleep(random.uniform(0, 0.12))  # the moment is the point of this test
            await kill(daemon)
            await wait_until(lambda folder=folder: not naming(folder), 5, "no worker")


async def test_the_stop_signal_comes_at_once_and_kill_after_the_timeout(tmp_path: Path) -> None:
    async with lone_daemon(tmp_path, STUBBORN, stop_timeout_s=1.0) as daemon:
        worker = await said(daemon, "spawned")
        await wait_until(lambda: "up" in (tmp_path / "worker.log").read_text(), what="a deaf worker")
        await kill(daemon)
        began = time.monotonic()
        await wait_until(lambda: family.create_time(worker) is None, 5, "its end")
        assert 0.9 < time.monotonic() - began < 3


async def test_where_kill_is_not_allowed_a_deaf_worker_lives_on_under_its_tether(tmp_path: Path) -> None:
    async with lone_daemon(tmp_path, STUBBORN, stop_timeout_s=0.2, may_kill=False) as daemon:
        worker = await said(daemon, "spawned")
        await wait_until(lambda: "up" in (tmp_path / "worker.log").read_text(), what="a deaf worker")
        parent = tether.process_table()[worker][0]
        await kill(daemon)
        with contextlib.suppress(AssertionError):
            await wait_until(lambda: family.create_time(worker) is None, 1.0)
        assert tether.process_table()[worker][0] == parent
        os.kill(worker, signal.SIGKILL)
        await wait_until(lambda: family.create_time(parent) is None, 5, "the tether's end")


async def test_a_grandchild_in_a_session_of_its_own_ends_too(tmp_path: Path) -> None:
    async with lone_daemon(tmp_path, PARENT_OF_A_SETSID_CHILD) as daemon:
        await said(daemon, "spawned")
        await wait_until(lambda: "child" in (tmp_path / "worker.log").read_text(), what="a grandchild")
        child = int((tmp_path / "worker.log").read_text().split()[-1])
        await kill(daemon)
        await wait_until(lambda: family.create_time(child) is None, 5, "the grandchild's end")


async def test_what_ends_a_terminal_session_does_not_end_the_tether(tmp_path: Path) -> None:
    async with lone_daemon(tmp_path, SLEEPER) as daemon:
        worker = await said(daemon, "spawned")
        parent = tether.process_table()[worker][0]
        assert os.getsid(parent) != os.getsid(daemon.pid)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            os.kill(parent, number)
        await kill(daemon)
        await wait_until(lambda: family.create_time(worker) is None, 5, "the worker's end")


LINUX = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


@LINUX
def test_what_macos_is_asked_tells_the_same_as_proc() -> None:
    proc = tether.table_of_linux()[os.getpid()][:2]
    assert proc == (os.getppid(), os.getpgid(0))
    assert family.table_of_psutil()[os.getpid()][:2] == proc
    if Path("/bin/ps").exists():
        assert tether.table_of_ps()[os.getpid()][:2] == proc
