"""Measure whether the engine ages: thousands of mixed requests on a tiny model, and what a plain step takes meanwhile.

    python bench/young.py [--requests N] [--json FILE]

Requests join, leave early, share beginnings, and spill to disk. Between them, at rest: memory, and the CPU time of the
cheapest of a few bursts of plain steps, which a busy machine disturbs less than their duration.
"""

from __future__ import annotations

import argparse
import asyncio
import datetime
import json
import os
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import mlx.core as mx
import psutil

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "engine"))

from mixed_requests import mixed_request
from tiny_model import random_prompt, write_tiny_model

from bench.proxy_report import machine
from engine.decode_thread import DecodeThread
from engine.request import NO_SPECULATION, EngineSettings, GenerationRequest, Sampling

STAGES = 10
TOGETHER = 8
BURSTS, BURST_TOKENS = 12, 150
RAM, DISK = 2_000_000, 4_000_000
MOST_SLOWER, MOST_ACTIVE_BYTES, MOST_RSS_SHARE = 1.03, 500_000, 0.03


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--requests", type=int, default=2000, metavar="N")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result there, too")
    options = parser.parse_args()
    load = os.getloadavg()
    with tempfile.TemporaryDirectory() as folder:
        stages = asyncio.run(measure(Path(folder), options.requests))
    result = {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "load_average": {"before": load, "after": os.getloadavg()},
        "requests": options.requests,
        **summary(stages),
        "stages": stages,
    }
    text = json.dumps(result, indent=2)
    if options.json:
        options.json.write_text(text + "\n")
    print(text, flush=True)
    os._exit(0)  # at once, because MLX has been used in this process


async def measure(folder: Path, requests: int) -> list[dict[str, Any]]:
    model = write_tiny_model(folder / "tiny")
    aged = await started(EngineSettings(str(model), "auto", 15, RAM, prefix_disk_bytes=DISK, prefix_folder=str(folder)))
    dice, stages = random.Random(1), [await at_rest(aged)]
    for _ in range(STAGES):
        left = requests // STAGES
        while left > 0:
            count = min(left, dice.randrange(1, TOGETHER + 1))
            await asyncio.gather(*(mixed_request(aged, dice) for _ in range(count)))
            left -= count
        stages.append(await at_rest(aged))
    return stages


async def started(settings: EngineSettings) -> DecodeThread:
    thread = DecodeThread(settings)
    thread.start()
    await thread.ready()
    return thread


async def at_rest(aged: DecodeThread) -> dict[str, Any]:
    """Memory in bytes, less what the prefix cache holds, and what a plain step takes."""
    bursts = [await burst(aged) for _ in range(BURSTS)]
    await aged.remedy("clear_cache")
    held = aged.stats()["prefix_cache"]
    return {
        "requests": aged.stats()["requests"],
        "step_cpu_us": round(min(bursts) / BURST_TOKENS * 1e6, 1),
        "active_bytes": mx.get_active_memory() - held["bytes"],
        "rss_bytes": psutil.Process().memory_info().rss,
        "prefix_cache": held,
    }


async def burst(thread: DecodeThread) -> float:
    """CPU seconds of plain steps."""
    request = GenerationRequest(
        "burst", tuple(random_prompt(1)), BURST_TOKENS, Sampling(temperature=0), speculation=NO_SPECULATION
    )
    began = time.process_time()
    async for _ in thread.submit(request):
        pass
    return time.process_time() - began


def summary(stages: list[dict[str, Any]]) -> dict[str, Any]:
    """The later half against the first stage after warming up."""
    settled, late = stages[1], stages[len(stages) // 2 :]
    slower = statistics.median(stage["step_cpu_us"] for stage in late) / settled["step_cpu_us"]
    active = max(stage["active_bytes"] for stage in late) - settled["active_bytes"]
    rss = late[-1]["rss_bytes"] / late[0]["rss_bytes"] - 1
    return {
        "step_time": {"ratio": round(slower, 4), "bar": MOST_SLOWER, "met": slower <= MOST_SLOWER},
        "active_memory": {"grown_bytes": active, "bar": MOST_ACTIVE_BYTES, "met": active <= MOST_ACTIVE_BYTES},
        "resident_memory": {"grown_share": round(rss, 4), "bar": MOST_RSS_SHARE, "met": rss <= MOST_RSS_SHARE},
    }


if __name__ == "__main__":
    main()
