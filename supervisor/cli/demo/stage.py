"""The demo's stage: a daemon of its own with one lane, in a folder that goes when the demo ends."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from supervisor.cli.client import Daemon
from supervisor.cli.exits import CommandError, NotReachableError
from supervisor.cli.target import Target
from supervisor.shell.machine.ports import free_port
from supervisor.shell.worker.process import WorkerProcess, WorkerSpec
from supervisor.token import read_token

LANE = "smollm2"
CONFIG = """\
listen: 127.0.0.1:{port}
state_dir: {state_dir}
lanes:
  {lane}:
    model: smollm2-135m
    replace: in_place
    speculation: {{method: "off"}}  # the runs that tell steps from their yield would double the canaries
    # What takes hours in life takes a minute here: the same judge, asked more often.
    canary: {{every: 4s, prompt_tokens: [64], max_tokens: 16, max_time: 700ms, idle_for: 0s, budget: 100%,
             burst_budget: 100%, force_after: 4s, host_check: "{host_check}"}}
    recycle: {{min_uptime: 0s, wait_idle: 0s}}
"""
LISTENS_WITHIN_S = 60.0
STOP_S = 20.0
LOG_BYTES = 10_000_000
STEP_S = 0.1


@dataclass(frozen=True)
class Stage:
    """A daemon that listens."""

    url: str
    folder: Path
    process: WorkerProcess

    @property
    def log_path(self) -> Path:
        """What the daemon says."""
        return self.process.output.path

    def target(self) -> Target:
        """How to ask it."""
        return Target(self.url, read_token(self.folder / "state"))


@asynccontextmanager
async def staged(*, host_check: bool) -> AsyncIterator[Stage]:
    """A running daemon; it and its folder go with the block. Without ``host_check`` only the worker is measured.

    It hangs on a tether, as workers do: killed outright, the demo leaves nothing behind but the folder.

    Raises:
        CommandError: the daemon did not come up.
    """
    with tempfile.TemporaryDirectory(prefix="freshlane-demo-", ignore_cleanup_errors=True) as name:
        folder, port = Path(name), free_port()
        config = folder / "lanes.yaml"
        checked = "auto" if host_check else "off"
        config.write_text(CONFIG.format(port=port, state_dir=folder / "state", lane=LANE, host_check=checked))
        process = await WorkerProcess.spawn(_daemon(folder, config))
        try:
            stage = Stage(f"http://127.0.0.1:{port}", folder, process)
            await _listens(stage)
            yield stage
        finally:
            await process.close(STOP_S + 5.0)


def _daemon(folder: Path, config: Path) -> WorkerSpec:
    return WorkerSpec(
        argv=(sys.executable, "-P", "-m", "supervisor", "run", "-c", str(config)),
        env=dict(os.environ),
        cwd=folder,
        output_path=folder / "daemon.log",
        output_max_bytes=LOG_BYTES,
        output_keep=1,
        stop_signal=signal.SIGTERM,
        stop_timeout_s=STOP_S,
        may_kill=True,
        lane="demo",
        generation=0,
    )


async def _listens(stage: Stage) -> None:
    due = asyncio.get_running_loop().time() + LISTENS_WITHIN_S
    while not stage.process.exit.done():
        try:
            async with Daemon(stage.target()) as daemon:
                await daemon.get("/api/version")
        except (NotReachableError, CommandError):
            if asyncio.get_running_loop().time() > due:
                break
            await asyncio.sleep(STEP_S)
        else:
            return
    said = stage.process.output.tail(5).strip()
    ended = stage.process.exit.done()
    what = f"ended ({stage.process.exit.result()})" if ended else f"did not listen within {LISTENS_WITHIN_S:.0f} s"
    raise CommandError(f"the demo's daemon {what}; it said:\n{said}")
