"""Measure what the daemon costs while nothing happens: memory, CPU, and that MLX is not in it.

    python bench/idle.py [--seconds N] [--json FILE]

A real daemon with one lane on a fake worker, its health watched and its canaries due as by default.
"""

from __future__ import annotations

import argparse
import asyncio
import datetime
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import psutil

from bench.proxy_report import machine
from tests.fakes import fake_command
from tests.scenarios.daemon_process import running_daemon

MOST_CPU_SHARE = 0.01
MOST_RSS_MIB = 120


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--seconds", type=float, default=60.0, help="how long to watch")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result there, too")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        result = asyncio.run(bench(Path(folder), options.seconds))
    text = json.dumps(result, indent=2)
    if options.json:
        options.json.write_text(text + "\n")
    print(text)


async def bench(folder: Path, seconds: float) -> dict[str, Any]:
    config = {"lanes": {"idle": {"command": fake_command(tok_s=60)}}}
    async with running_daemon(folder, config) as daemon:
        await daemon.serving("idle")
        process = psutil.Process(daemon.pid)
        before = process.cpu_times()
        await asyncio.sleep(seconds)
        after = process.cpu_times()
        share = (after.user + after.system - before.user - before.system) / seconds
        rss_mib = process.memory_info().rss / 2**20
        has_mlx = any("mlx" in mapped.path for mapped in process.memory_maps())
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "seconds": seconds,
        "cpu_share": {"value": round(share, 5), "bar": MOST_CPU_SHARE, "met": share <= MOST_CPU_SHARE},
        "rss_mib": {"value": round(rss_mib, 1), "bar": MOST_RSS_MIB, "met": rss_mib <= MOST_RSS_MIB},
        "has_mlx": {"value": has_mlx, "met": not has_mlx},
    }


if __name__ == "__main__":
    main()
