"""Try the judge in simulated worlds: how often it is wrong, and how soon it finds what is wrong.

    python bench/judge.py [--quick] [--only NAME,...] [--seed N] [--minutes M] [--json FILE]

It drives the classes that the daemon uses; only time, workers and noise are simulated, from fixed seeds. The lanes of
all scenarios take turns, so that a bench that is cut short has the same share of each.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench import judge_policies as policies
from bench.judge_scenarios import SCENARIOS, lanes_of, one_lane, report
from bench.proxy_report import machine

ROOT = Path(__file__).parents[1]
QUICK = 0.004
QUICK_DELAYS = 0.05
POLICY_LANES = 4
POLICIES = "policies"


class Job(NamedTuple):
    """One lane. ``turn``: the share of its scenario that comes before it."""

    turn: float
    scenario: str
    live: Callable[[Any], Any]
    lane: tuple[Any, ...]


def main() -> int:
    """The exit status is 1 if a bar does not hold."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true", help="a small part: shows that it works, proves little")
    parser.add_argument("--share", type=float, default=1.0, help="of the lane-days of the full bench")
    parser.add_argument("--only", default="", metavar="NAME,...", help="these scenarios alone")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the first lane of each scenario")
    parser.add_argument("--minutes", type=float, default=math.inf, metavar="M", help="begin no lane after that")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result there, too")
    options = parser.parse_args()
    only = set(filter(None, options.only.split(",")))
    jobs = list(all_jobs(options.quick, options.share, only, options.seed))
    result = bench(sorted(jobs, key=lambda job: job.turn), options.minutes * 60)
    result = {"quick": options.quick, "seed": options.seed, **result}
    if options.json:
        options.json.write_text(json.dumps(result, indent=2) + "\n")
    return 0 if all(line["holds"] for line in [*result["scenarios"], *result["policies"]]) else 1


def all_jobs(quick: bool, full: float, only: set[str], seed: int) -> Iterator[Job]:
    """Each lane has a seed of its own."""
    for scenario in SCENARIOS:
        if not only or scenario.name in only:
            lanes = lanes_of(scenario, full if not quick else QUICK if scenario.days else QUICK_DELAYS)
            for lane in range(lanes):
                yield Job(lane / lanes, scenario.name, one_lane, (scenario, seed + lane))
    if not only or POLICIES in only:
        lanes = 1 if quick else max(round(POLICY_LANES * full), 1)
        for lane in range(lanes):
            for row in policies.ROWS:
                for policy in policies.POLICIES:
                    yield Job(lane / lanes, POLICIES, policies.one_lane, (row, policy, seed + lane))


def bench(jobs: Sequence[Job], limit_s: float) -> dict[str, Any]:
    """All jobs, as far as the time allows."""
    began, code, load = time.monotonic(), commit(), os.getloadavg()
    done: list[tuple[Job, Any]] = []
    with ProcessPoolExecutor() as pool:
        futures = [pool.submit(job.live, job.lane) for job in jobs]
        for job, future in zip(jobs, futures, strict=True):
            if time.monotonic() - began > limit_s:
                break
            done.append((job, future.result()))
        pool.shutdown(cancel_futures=True)
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "commit": code,
        "share": round(len(done) / len(jobs), 3),
        "machine": machine(),
        "load_average": {"before": load, "after": os.getloadavg()},
        "took_s": round(time.monotonic() - began, 1),
        "cpu_s": round(resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime, 1),
        **told(done),
    }


def told(done: Sequence[tuple[Job, Any]]) -> dict[str, Any]:
    """The lines of the scenarios, then those of the policies."""
    scenarios = [
        report(scenario, lanes)
        for scenario in SCENARIOS
        if (lanes := [found for job, found in done if job.scenario == scenario.name])
    ]
    kept = {job.lane: found for job, found in done if job.scenario == POLICIES}
    table = policies.table(kept) if kept else []
    for line in [*scenarios, *table]:
        say(line.get("scenario") or line["ageing"], line)
    return {"scenarios": scenarios, "policies": table}


def commit() -> str:
    """Of the code that runs; with a plus sign where it was changed since."""
    git = ["git", "-C", str(ROOT)]
    head = subprocess.run([*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    changed = subprocess.run([*git, "diff", "--quiet", "HEAD"], check=False).returncode
    return head.stdout.strip() + ("+" if changed else "")


def say(name: str, line: dict[str, Any]) -> None:
    """One line for people."""
    numbers = {key: value for key, value in line.items() if key not in ("scenario", "ageing", "holds", "bars")}
    print(f"{name:16s} {'ok  ' if line['holds'] else 'MISS'} {numbers} bars {line['bars']}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
