"""What a soak came to: counts, and which failures were allowed."""

from __future__ import annotations

import statistics
from collections import Counter
from pathlib import Path
from typing import Any

from bench.soak_bars import CROWD_HELD, CROWD_INFLIGHT
from bench.soak_chaos import Chaos, by_kind
from bench.soak_clients import SoakClients
from bench.soak_digests import compared
from bench.soak_failures import failures
from bench.soak_lanes import SoakLane
from bench.soak_watch import Watch, growth
from tests.fakes import read_lines

CUTTING = frozenset({"crashed", "hung", "memory"})
"""Triggers of recycles that wait for no stream."""


def counted(
    clients: SoakClients, chaos: Chaos, watch: Watch, records: list[dict[str, Any]], lag: Path
) -> dict[str, Any]:
    """All that was counted, ready for JSON."""
    counts = clients.counts
    sent = {name: read_lines(clients.lanes[name].digest_file) for name in clients.whole}
    digests = compared(clients.whole, sent, chaos.deaths)
    ended = counts["whole"] + counts["left"] + counts["failed"]
    return {
        "requests": {
            **counts,
            "without_an_end": counts["requests"] - ended,
            "whole_but_not_written_down_by_a_killed_worker": len(digests.unwritten),
            "by_lane": dict(clients.by_lane),
            "longest_s": round(clients.longest_s, 2),
        },
        "events": by_kind(chaos.done),
        "events_without_effect": dict(chaos.skipped),
        "recycles": recycles(records, clients.lanes),
        "failures": failures(clients.failures, chaos.deaths),
        "rss_mib": growth(watch.sizes, lambda size: size.rss_mib),
        "fds": growth(watch.sizes, lambda size: size.fds),
        "lag_ms": lateness(lag),
        "most_workers": dict(watch.most_workers),
        "quiet_moments": watch.quiet_moments,
        "wrong": {
            "mixed": digests.mixed,
            "gates": watch.gates_wrong,
            "workers": watch.too_many,
            "answers": chaos.wrong,
        },
    }


def recycles(records: list[dict[str, Any]], lanes: dict[str, SoakLane]) -> dict[str, Any]:
    """Counts by trigger and outcome; of those planned and done, how, and in place of busy lanes, with what crowd."""
    outcomes = Counter(f"{one['trigger']} {one['outcome']}" for one in records)
    done = [one for one in records if one["outcome"] not in ("aborted", "failed")]
    planned = [one for one in done if one["trigger"] not in CUTTING]
    in_place = [one for one in planned if one["replace"] == "in_place"]
    busy = [one for one in in_place if lanes[one["lane"]].is_busy]
    crowded = [one for one in busy if is_in_a_crowd(one)]
    held_before = [one for one in busy if one not in crowded and one["drain"]["held"] >= CROWD_HELD]
    bare = [one for one in busy if one not in crowded and one not in held_before]
    return {
        "done": len(done),
        "planned": len(planned),
        "overlapped": len(planned) - len(in_place),
        "in_place_in_a_crowd": len(crowded),
        "in_place_with_enough_held_but_few_in_flight": len(held_before),
        "in_place_without_a_crowd": len(bare),
        "of_these": [f"{one['id']} {one['trigger']} {one['drain']}" for one in bare[:10]],
        "in_place_of_a_lane_at_rest": len(in_place) - len(busy),
        "by_trigger_and_outcome": dict(sorted(outcomes.items())),
        "requests_failed": sum(one["requests"]["failed"] for one in records),
        "requests_replayed": sum(one["requests"]["replayed"] for one in records),
        "requests_held": sum(one["requests"]["held"] for one in records),
    }


def is_in_a_crowd(record: dict[str, Any]) -> bool:
    """Enough were in flight when its gate closed, and enough were held when it opened."""
    drain = record["drain"]
    return bool(drain["inflight"] >= CROWD_INFLIGHT and drain["held"] >= CROWD_HELD)


def lateness(path: Path) -> dict[str, Any]:
    """Of the lag process's lines: how long answers took, and what is left without the waits for a CPU."""
    lines = [[float(part) for part in line.split()] for line in path.read_text().splitlines()]
    whole = [line for line in lines if len(line) == 2]  # the last may be torn
    return {
        "answers": len(whole),
        "answer": _quantiles([answer for answer, _ in whole]),
        "without_waits_for_cpu": _quantiles([max(answer - waited, 0.0) for answer, waited in whole]),
    }


def _quantiles(values: list[float]) -> dict[str, float]:
    cuts = statistics.quantiles(values, n=100)
    return {"p50": round(cuts[49], 2), "p99": round(cuts[98], 2), "most": round(max(values), 2)}
