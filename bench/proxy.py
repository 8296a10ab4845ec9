"""Measure what the proxy costs: the same streams, through it and around it, by turns and at the same time.

    python bench/proxy.py [--quick] [--json FILE]

A fake worker paces the tokens. Of each pair of streams one goes through the proxy, the other straight to the worker.
"""

from __future__ import annotations

import argparse
import asyncio
import datetime
import json
import os
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import psutil
import uvloop

from bench.proxy_front import serve
from bench.proxy_report import machine, paired_report
from bench.streams import Measured, measure_stream
from tests.conftest import RunningWorker, find_free_port, start_worker
from tests.fakes import fake_command

TOK_S = 60.0
STREAMS = 16
MANY_STREAMS = 64
MANY_TOK_S = 20.0
STAGGER_S = 0.0131
"""Between two streams; no divisor of a token's time, so that events do not fall together."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true", help="few streams: shows that it works, proves little")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result there, too")
    parser.add_argument("--serve", nargs=2, metavar=("PORT", "WORKER"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        uvloop.run(serve(int(options.serve[0]), options.serve[1]))
        return
    result = uvloop.run(bench(quick=options.quick))
    text = json.dumps(result, indent=2)
    if options.json:
        options.json.write_text(text + "\n")
    print(text)


async def bench(*, quick: bool) -> dict[str, Any]:
    load_before = os.getloadavg()
    paired, _ = await with_processes(TOK_S, lambda worker, front: pairs(worker, front, rounds=2 if quick else 20))
    many = await with_processes(MANY_TOK_S, lambda worker, front: crowd(worker, front, tokens=40 if quick else 200))
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "quick": quick,
        "machine": machine(),
        "load_average": {"before": load_before, "after": os.getloadavg()},
        "paired": {"streams": STREAMS, "tok_s": TOK_S, **paired_report(paired)},
        "crowd": many,
    }


async def with_processes(tok_s: float, work: Any) -> Any:
    """Do it with a worker and a front, each in a process of its own."""
    worker = await start_worker(fake_command(tok_s=tok_s), find_free_port())
    port = find_free_port()
    front = await start_worker([sys.executable, __file__, "--serve", str(port), worker.url], port)
    try:
        return await work(worker, front)
    finally:
        await front.end()
        await worker.end()


async def pairs(
    worker: RunningWorker, front: RunningWorker, rounds: int
) -> tuple[list[tuple[Measured, Measured]], int]:
    """Rounds of 16 pairs, staggered; which of a pair comes first alternates."""
    measured: list[tuple[Measured, Measured]] = []
    for number in range(rounds):
        order = (front.port, worker.port) if number % 2 else (worker.port, front.port)
        async with asyncio.TaskGroup() as group:
            tasks = []
            for stream in range(STREAMS):
                both = []
                for turn, port in enumerate(order):
                    delay_s = (2 * stream + turn) * STAGGER_S
                    both.append(group.create_task(measure_stream(port, f"{number}/{stream}", 60, delay_s)))
                tasks.append(both if order[0] == front.port else both[::-1])
        measured += [(through.result(), around.result()) for through, around in tasks]
        print(f"round {number + 1} of {rounds}", file=sys.stderr)
    return measured, rounds


async def crowd(_worker: RunningWorker, front: RunningWorker, tokens: int) -> dict[str, Any]:
    """64 streams at once: what an event costs in the front's CPU time."""
    process = psutil.Process(front.pid)
    await measure_stream(front.port, "warm", 10)
    before = process.cpu_times()
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(measure_stream(front.port, f"many {stream}", tokens, stream * STAGGER_S))
            for stream in range(MANY_STREAMS)
        ]
    after = process.cpu_times()
    spent_s = after.user + after.system - before.user - before.system
    events = sum(task.result().events for task in tasks)
    return {
        "streams": MANY_STREAMS,
        "tok_s": MANY_TOK_S,
        "events": events,
        "front_cpu_s": round(spent_s, 3),
        "cpu_us_per_event": round(1e6 * spent_s / events, 1),
    }


if __name__ == "__main__":
    main()
