"""A real daemon: `freshlane run` as a process of its own, on a real port, with a state folder of its own."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import psutil
import yaml

from supervisor.token import read_token
from tests.conftest import find_free_port
from tests.waiting import wait_until

READY_S = 60.0


class RunningDaemon:
    """One daemon and the ways to ask it. Made by `running_daemon`."""

    def __init__(self, folder: Path, config: dict[str, Any], *, env: dict[str, str] | None = None) -> None:
        self.folder = folder
        self.state_dir = folder / "state"
        self.config_path = folder / "lanes.yaml"
        self.log_path = folder / "daemon.log"
        self.port = find_free_port()
        self.env = env or {}
        self.process: asyncio.subprocess.Process | None = None
        self.session: aiohttp.ClientSession | None = None
        self.write_config(config)

    def write_config(self, config: dict[str, Any]) -> None:
        """Replace lanes.yaml; `listen` and `state_dir` are filled in."""
        whole = {"listen": f"127.0.0.1:{self.port}", "state_dir": str(self.state_dir), **config}
        unshared = json.loads(json.dumps(whole))  # no anchors: lanes.yaml has none
        self.config_path.write_text(yaml.safe_dump(unshared, sort_keys=False))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self.process
        return self.process.pid

    async def start(self) -> None:
        """Start the process; returns at once."""
        with self.log_path.open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-m", "supervisor", "run", "-c", str(self.config_path)),
                env={**os.environ, **self.env},
                stdout=log,
                stderr=log,
            )
        await self.open_session()

    async def open_session(self) -> None:
        """Make ready to ask; for a daemon that a test started in its own way."""
        connector = aiohttp.TCPConnector(limit=0)
        self.session = self.session or aiohttp.ClientSession(
            connector=connector, timeout=aiohttp.ClientTimeout(total=None)
        )

    async def listening(self) -> None:
        """Wait until it answers; one that has ended never will."""

        async def fact() -> int | bool:
            return self.process is None or self.process.returncode is not None or await self.status("/healthz", 200)

        await wait_until(fact, READY_S, f"the daemon to listen; see {self.log_path}")
        assert self.process
        assert self.process.returncode is None, self.log()[-2000:]

    async def serving(self, lane: str, within_s: float = READY_S) -> dict[str, Any]:
        """Wait until the lane serves; its snapshot."""
        return await self.lane_is(lane, "serving", within_s)

    async def lane_is(self, lane: str, state: str, within_s: float = READY_S) -> dict[str, Any]:
        """Wait until the lane is in `state`; its snapshot."""

        async def fact() -> dict[str, Any] | None:
            snapshot = await self.lane(lane)
            assert "a fault of freshlane" not in snapshot["reason"], snapshot["reason"]
            return snapshot if snapshot["state"] == state else None

        return await wait_until(fact, within_s, f"lane {lane} to be {state}; see {self.log_path}")

    async def end(self, deadline_s: float = 30.0) -> int:
        """SIGTERM, and its exit code; SIGKILL after the deadline, which is a failure."""
        assert self.process
        if self.process.returncode is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return await asyncio.wait_for(self.process.wait(), deadline_s)
        finally:
            await self.kill()

    async def kill(self) -> None:
        """SIGKILL to the daemon alone."""
        assert self.process
        if self.process.returncode is None:
            self.process.kill()
            await self.process.wait()

    # ---- asking ----

    def headers(self) -> dict[str, str]:
        token = read_token(self.state_dir)
        return {"Authorization": f"Bearer {token}"} if token else {}

    async def get(self, path: str) -> Any:
        assert self.session
        timeout = aiohttp.ClientTimeout(total=30)
        async with self.session.get(self.url + path, headers=self.headers(), timeout=timeout) as answer:
            answer.raise_for_status()
            return await answer.json()

    async def post(self, path: str, body: Any = None, timeout_s: float = 120.0) -> tuple[int, Any]:
        assert self.session
        timeout = aiohttp.ClientTimeout(total=timeout_s)
        async with self.session.post(self.url + path, json=body, headers=self.headers(), timeout=timeout) as answer:
            return answer.status, await answer.json()

    async def status(self, path: str, expect: int | None = None) -> int | bool:
        assert self.session
        try:
            async with self.session.get(self.url + path, timeout=aiohttp.ClientTimeout(total=5)) as answer:
                return answer.status if expect is None else answer.status == expect
        except aiohttp.ClientError:
            return False

    async def lane(self, lane: str) -> dict[str, Any]:
        return dict(await self.get(f"/api/lanes/{lane}"))

    async def recycles(self, lane: str) -> list[dict[str, Any]]:
        return list((await self.get(f"/api/recycles?lane={lane}&limit=500"))["recycles"])

    async def samples(self, lane: str) -> list[dict[str, Any]]:
        return list((await self.get(f"/api/samples?lane={lane}"))["samples"])

    def log(self) -> str:
        return self.log_path.read_text(errors="replace")

    def workers(self) -> list[int]:
        """Pids of all processes that carry this daemon's state folder in their command or environment."""
        return [process.pid for process in psutil.process_iter() if self._is_worker(process)]

    def _is_worker(self, process: psutil.Process) -> bool:
        try:
            folder = process.environ().get("TEST_DAEMON_FOLDER", "")
            return folder == str(self.folder) and "FRESHLANE_GENERATION" in process.environ()
        except psutil.Error:
            return False

    def records_on_disk(self) -> list[dict[str, Any]]:
        path = self.state_dir / "recycle.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@asynccontextmanager
async def running_daemon(folder: Path, config: dict[str, Any], **options: Any) -> AsyncIterator[RunningDaemon]:
    """A daemon that listens; ended with the block, its workers too."""
    folder.mkdir(parents=True, exist_ok=True)
    daemon = RunningDaemon(folder, config, **options)
    daemon.env["TEST_DAEMON_FOLDER"] = str(folder)
    try:
        await daemon.start()
        await daemon.listening()
        yield daemon
    finally:
        if daemon.process:
            await daemon.kill()
        if daemon.session:
            await daemon.session.close()
        await wait_until(lambda: not daemon.workers(), 30.0, "the workers of a killed daemon to end")
