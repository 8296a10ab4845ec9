"""The demo's hold on the program that slows a worker."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

BEGIN_S = 30.0
END_S = 5.0


@asynccontextmanager
async def slowed(pid: int, cores: float) -> AsyncIterator[None]:
    """Within the block ``pid`` gets at most ``cores`` processor seconds a second; behind it, all it wants."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "supervisor.cli.demo.slower", str(pid), str(cores)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,  # Ctrl-C is for the demo, which then ends this one
    )
    try:
        if process.stdout:
            await asyncio.wait_for(process.stdout.readline(), BEGIN_S)
        yield
    finally:
        if process.stdin:
            process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), END_S)
        finally:
            if process.returncode is None:
                process.kill()
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
