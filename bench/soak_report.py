"""What a soak came to: counts, which failures were allowed, and whether each invariant held."""

from __future__ import annotations

import statistics
from collections import Counter
from pathlib import Path
from typing import Any

from bench.soak_chaos import Chaos, by_kind
from bench.soak_clients import Failure, SoakClients
from bench.soak_watch import Watch, growth
from tests.fakes import read_lines

MOST_RSS_GROWTH_MIB = 5.0
MOST_FD_GROWTH = 8.0
MOST_LAG_MS = 50.0
FOUND_WITHIN_S = 30.0
"""A stream may fail this long after its worker was stopped or killed."""


def report(
    clients: SoakClients, chaos: Chaos, watch: Watch, records: list[dict[str, Any]], lag: Path
) -> dict[str, Any]:
    """All that was counted; ``invariants`` says of each whether it held."""
    allowed = [one for one in clients.failures if is_allowed(one, chaos)]
    refused = [one for one in clients.failures if one not in allowed]
    rss = growth(watch.sizes, lambda size: size.rss_mib)
    fds = growth(watch.sizes, lambda size: size.fds)
    late = lateness(lag)
    mixed = mixed_up(clients)
    return {
        "requests": {**clients.counts, "by_lane": dict(clients.by_lane), "longest_s": round(clients.longest_s, 2)},
        "events": by_kind(chaos.done),
        "events_without_effect": dict(chaos.skipped),
        "recycles": recycles(records),
        "failures": {
            "allowed": len(allowed),
            "not_allowed": len(refused),
            "of_these": [str(one) for one in refused[:10]],
        },
        "rss_mib": rss,
        "fds": fds,
        "lag_ms": late,
        "most_workers": dict(watch.most_workers),
        "quiet_moments": watch.quiet_moments,
        "wrong": [*watch.wrong[:20], *chaos.wrong[:20], *mixed[:20]],
        "invariants": {
            "no request lost": not refused,
            "no request mixed between lanes": not mixed,
            "workers and gate counts as allowed": not watch.wrong,
            "the daemon answers as it should": not chaos.wrong,
            "memory flat": rss["growth"] <= MOST_RSS_GROWTH_MIB,
            "open files flat": fds["growth"] <= MOST_FD_GROWTH,
            "loop lag": late["without_waits_for_cpu"]["p99"] <= MOST_LAG_MS,
        },
    }


def is_allowed(failure: Failure, chaos: Chaos) -> bool:
    """Only a stream that had begun on a killed or hung worker may fail, with an error event; or a poison request."""
    deaths = chaos.deaths(failure.lane, failure.began - FOUND_WITHIN_S, failure.ended + 1.0)
    if failure.is_poison:
        return deaths >= 2
    return failure.has_error_event and deaths >= 1


def mixed_up(clients: SoakClients) -> list[str]:
    """Whole answers that no worker of their lane says it sent, and requests that came to another lane's worker."""
    wrong = []
    for name, answers in clients.whole.items():
        path = clients.lanes[name].digest_file
        sent = {(line["request_id"], line["sha256"]) for line in read_lines(path)}
        strangers = {str(one) for one, _ in sent if _lane_in(str(one), clients) not in (None, name)}
        wrong += [f"lane {name} got {one}" for one in strangers]
        wrong += [f"no worker of {name} sent the answer to {one}" for one in answers if (one, answers[one]) not in sent]
    return wrong


def _lane_in(request_id: str, clients: SoakClients) -> str | None:
    name = request_id.split("-", maxsplit=1)[0]
    return name if name in clients.lanes else None


def recycles(records: list[dict[str, Any]]) -> dict[str, Any]:
    """Counts by trigger and outcome; of planned ones in the busiest lane, how many had a crowd."""
    planned = [one for one in records if one["lane"] == "home" and one["trigger"] in ("operator", "config", "degraded")]
    done = [one for one in planned if one["outcome"] not in ("aborted", "failed")]
    crowded = [one for one in done if one["drain"]["inflight"] >= 4 and one["drain"]["held"] >= 8]
    return {
        "all": len(records),
        "by_trigger_and_outcome": dict(
            sorted(Counter(f"{one['trigger']} {one['outcome']}" for one in records).items())
        ),
        "in_place_planned": len(done),
        "in_place_planned_with_4_in_flight_and_8_held": len(crowded),
        "requests_failed": sum(one["requests"]["failed"] for one in records),
        "requests_replayed": sum(one["requests"]["replayed"] for one in records),
        "requests_held": sum(one["requests"]["held"] for one in records),
    }


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
