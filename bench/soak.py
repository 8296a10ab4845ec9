"""Soak a real daemon in chaos: hours compressed, with test workers, on a schedule that its seed fixes.

    python bench/soak.py [--minutes N] [--seed N] [--json FILE]

Lanes of each kind (in place, overlapping, on demand, on a fixed port) are streamed from without a pause, while workers
are killed, hang, age and start slowly, and lanes are recycled and reloaded. Exit status 1 if a bar did not hold.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import datetime
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.proxy_report import machine
from bench.soak_bars import bars
from bench.soak_chaos import Chaos, schedule
from bench.soak_clients import SoakClients
from bench.soak_lanes import configuration, soak_lanes
from bench.soak_report import counted
from bench.soak_watch import Watch
from tests.scenarios.daemon_process import RunningDaemon, running_daemon

LAST_STREAMS_S = 90.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--minutes", type=float, default=5.0, help="how long the chaos lasts")
    parser.add_argument("--seed", type=int, default=1, help="of the schedule and of the clients")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result there, too")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="leave logs and state there")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as passing:
        folder = options.keep or Path(passing)
        folder.mkdir(parents=True, exist_ok=True)
        result = asyncio.run(until_told(soak(folder, options.minutes * 60, options.seed)))
    text = json.dumps(result, indent=2)
    if options.json:
        options.json.write_text(text + "\n")
    print(text)
    return 0 if all(bar["holds"] for bar in result["bars"].values()) else 1


async def until_told(work: Coroutine[Any, Any, dict[str, Any]]) -> dict[str, Any]:
    """The work, cancelled by SIGTERM, lest its daemon and its workers live on."""
    task = asyncio.ensure_future(work)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await task


async def soak(folder: Path, seconds: float, seed: int) -> dict[str, Any]:
    """The result, ready for JSON; ``folder`` is there, and keeps logs and state."""
    load_before = os.getloadavg()
    lanes = soak_lanes(folder)
    lag = folder / "lag"
    async with running_daemon(folder / "daemon", configuration(lanes, with_guest=False)) as daemon:
        for name in ("home", "beside", "fixed"):
            await daemon.serving(name)
        clients = SoakClients(daemon.url, lanes, seed)
        chaos = Chaos(daemon, lanes, clients)
        watch = Watch(daemon, lanes, clients, chaos)
        observer = await asyncio.create_subprocess_exec(
            sys.executable, str(Path(__file__).with_name("soak_lag.py")), str(daemon.port), str(daemon.pid), str(lag)
        )
        try:
            await streaming(clients, chaos, watch, seconds, seed)
        finally:
            with contextlib.suppress(ProcessLookupError):  # it ends by itself where the daemon does not answer
                observer.kill()
            await observer.wait()
        version = (await daemon.get("/api/version"))["version"]
        ending = await end(daemon)
        result = counted(clients, chaos, watch, daemon.records_on_disk(), lag) | {"end": ending}
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "seed": seed,
        "seconds": seconds,
        "version": version,
        "commit": commit(),
        "machine": machine(),
        "load_average": {"before": load_before, "after": os.getloadavg()},
        "bars": {name: bar.document() for name, bar in bars(result, seconds).items()},
        **result,
    }


def commit() -> str:
    """Which one of the repository this is, and whether it was changed."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=12"]
    told = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    return told.stdout.strip() or "unknown"


async def streaming(clients: SoakClients, chaos: Chaos, watch: Watch, seconds: float, seed: int) -> None:
    """Clients, chaos and watch side by side; then one last quiet moment."""
    async with asyncio.TaskGroup() as group:
        crowd = group.create_task(clients.run())
        helpers = [group.create_task(one) for one in (watch.run(), watch.take_quiet_moments(), chaos.attend())]
        await chaos.run(schedule(seed, seconds, chaos.lanes))
        await chaos.calm()
        clients.stop()
        await asyncio.wait_for(crowd, LAST_STREAMS_S)
        for helper in helpers:
            helper.cancel()
    await watch.quiet_moment()
    watch.say()


async def end(daemon: RunningDaemon) -> dict[str, int]:
    """Stop the daemon as a service manager does: its exit code, and how many workers outlived it."""
    exit_code = await daemon.end()
    return {"exit_code": exit_code, "left_over": len(daemon.workers())}


if __name__ == "__main__":
    sys.exit(main())
