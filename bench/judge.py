"""Try the judge in simulated worlds: how often it is wrong, and how soon it finds what is wrong.

    python bench/judge.py [--quick] [--only NAME,...] [--json FILE]

It drives the classes that the daemon uses; only time, workers and noise are simulated, from fixed seeds.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.judge_policies import policies
from bench.judge_scenarios import SCENARIOS, Scenario, lanes_of, one_lane, report
from bench.proxy_report import machine

QUICK = 0.004
QUICK_DELAYS = 0.05
POLICY_LANES = 16


def main() -> int:
    """The exit status is 1 if a bar does not hold."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true", help="a small part: shows that it works, proves little")
    parser.add_argument("--share", type=float, default=1.0, help="of the lane-days of the full bench")
    parser.add_argument("--only", default="", metavar="NAME,...", help="these scenarios alone")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result there, too")
    options = parser.parse_args()
    only = set(filter(None, options.only.split(",")))
    result = bench(quick=options.quick, share=options.share, only=only)
    if options.json:
        options.json.write_text(json.dumps(result, indent=2) + "\n")
    return 0 if all(line["holds"] for line in [*result["scenarios"], *result["policies"]]) else 1


def bench(*, quick: bool, share: float, only: set[str]) -> dict[str, Any]:
    """All scenarios, then the policies."""
    began = time.monotonic()
    chosen = [scenario for scenario in SCENARIOS if not only or scenario.name in only]
    with ProcessPoolExecutor() as pool:
        scenarios = [run(scenario, pool, quick=quick, full=share) for scenario in chosen]
        table = (
            policies(pool, lanes=1 if quick else max(round(POLICY_LANES * share), 2))
            if not only or "policies" in only
            else []
        )
    for line in table:
        say(line["ageing"], line)
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "quick": quick,
        "share": share,
        "machine": machine(),
        "load_average": os.getloadavg(),
        "took_s": round(time.monotonic() - began, 1),
        "scenarios": scenarios,
        "policies": table,
    }


def run(scenario: Scenario, pool: ProcessPoolExecutor, *, quick: bool, full: float) -> dict[str, Any]:
    """One scenario over its lanes, each with a seed of its own."""
    share = full if not quick else QUICK if scenario.days else QUICK_DELAYS
    jobs = [(scenario, seed) for seed in range(lanes_of(scenario, share))]
    line = report(scenario, list(pool.map(one_lane, jobs, chunksize=4)))
    say(scenario.name, line)
    return line


def say(name: str, line: dict[str, Any]) -> None:
    """One line for people."""
    numbers = {key: value for key, value in line.items() if key not in ("scenario", "ageing", "holds", "bars")}
    print(f"{name:16s} {'ok  ' if line['holds'] else 'MISS'} {numbers} bars {line['bars']}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
