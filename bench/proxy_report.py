"""What pairs of streams say about the proxy."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import statistics
from typing import Any

import psutil

from bench.streams import Measured

ADDED_P50_MS = 2.0
ADDED_P99_MS = 10.0
DECODE_SHARE = 0.99


def machine() -> dict[str, Any]:
    """Where it was measured, with what."""
    return {
        "platform": platform.platform(),
        "cpus": os.cpu_count(),
        "memory_bytes": psutil.virtual_memory().total,
        "scheduling": scheduling(),
        "python": platform.python_version(),
        **{name: importlib.metadata.version(name) for name in ("aiohttp", "uvloop")},
    }


def scheduling() -> str:
    """Whether other work could get in between: under `chrt -r 1` it cannot, as on a quiet machine."""
    if not hasattr(os, "sched_getscheduler"):
        return "ordinary"
    return "ordinary" if os.sched_getscheduler(0) == os.SCHED_OTHER else "real-time"


def paired_report(pairs: list[tuple[Measured, Measured]]) -> dict[str, Any]:
    """Of (through the proxy, around it): the added time to the first token, and the share of the decode rate kept."""
    through = sorted(1000 * one.first_token_s for one, _ in pairs)
    around = sorted(1000 * other.first_token_s for _, other in pairs)
    added = sorted(1000 * (one.first_token_s - other.first_token_s) for one, other in pairs)
    shares = sorted(one.rate / other.rate for one, other in pairs)
    p50, p99 = _quantile(added, 0.50), _quantile(added, 0.99)
    share = statistics.median(shares)
    return {
        "pairs": len(pairs),
        "first_token_ms": {
            "through": {"p50": round(_quantile(through, 0.5), 2), "p99": round(_quantile(through, 0.99), 2)},
            "around": {"p50": round(_quantile(around, 0.5), 2), "p99": round(_quantile(around, 0.99), 2)},
        },
        "added_first_token_ms": {
            "p50": round(p50, 2),
            "p99": round(p99, 2),
            "bars": [ADDED_P50_MS, ADDED_P99_MS],
            "met": p50 <= ADDED_P50_MS and p99 <= ADDED_P99_MS,
        },
        "decode_rate_share": {
            "median": round(share, 4),
            "p1": round(_quantile(shares, 0.01), 4),
            "bar": DECODE_SHARE,
            "met": share >= DECODE_SHARE,
        },
    }


def _quantile(ordered: list[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
