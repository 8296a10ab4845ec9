"""A program that spawns one worker and waits, to be killed at any moment: FOLDER STOP_TIMEOUT MAY_KILL CODE."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from supervisor.shell.worker.process import WorkerProcess
from tests.shell.workers import python, spec_of


async def main(folder: Path, stop_timeout_s: float, may_kill: bool, code: str) -> None:
    """Says `ready` before the spawn, then `spawned PID`."""
    print("ready", flush=True)
    argv = python(code, str(folder))
    worker = await WorkerProcess.spawn(spec_of(folder, *argv, stop_timeout_s=stop_timeout_s, may_kill=may_kill))
    print("spawned", worker.pid, flush=True)
    await worker.exit


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), float(sys.argv[2]), sys.argv[3] == "True", sys.argv[4]))
