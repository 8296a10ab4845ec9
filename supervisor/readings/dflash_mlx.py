"""dflash-mlx: ``/metrics``, which is JSON: about the last request, and counts since it began."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from supervisor.readings.numbers import count, document, inner, number, positive, share
from supervisor.readings.reading import Phases, Reading, Totals

GB = 1_000_000_000
BEFORE_DECODING = frozenset({"prefill", "draft_prefill"})
"""Of ``phase_timings_us``: not part of a cycle."""


def dflash_metrics(body: bytes) -> Reading | None:
    """What it tells; of a request that runs, only that there is one."""
    said = document(body)
    if said is None or "server" not in said:
        return None
    last, totals, memory = inner(said, "last_request"), inner(said, "totals"), inner(said, "memory")
    phases = _phases(last)
    taken = number(last.get("acceptance_rate"))
    hits, misses = number(totals.get("cache_hits")), number(totals.get("cache_misses"))
    return Reading(
        running=1 if inner(said, "current_request") else 0,
        decode_tok_s=positive(last.get("decode_tok_s")),
        tokens_per_step=positive(last.get("tokens_per_cycle")),
        acceptance=() if taken is None else (taken,),
        step_ms=sum(ms for _, ms in phases) or None,
        phases_ms=phases,
        context_tokens=count(last.get("prompt_tokens")),
        cache_hit=share(hits, hits + misses) if hits is not None and misses is not None else None,
        memory_bytes=_bytes(memory),
        uptime_s=number(inner(said, "server").get("uptime_s")),
        totals=Totals(
            tokens=_with_current(said, totals, "generated_tokens", "generated_tokens"),
            decode_s=number(totals.get("decode_s")),
            prompt_tokens=_with_current(said, totals, "prefill_tokens_physical", "prefill_tokens_processed"),
        ),
    )


def _bytes(memory: Mapping[str, Any]) -> float | None:
    gigabytes = positive(memory.get("phys_footprint_gb")) or positive(memory.get("mlx_active_gb"))
    return None if gigabytes is None else gigabytes * GB


def _with_current(said: Mapping[str, Any], totals: Mapping[str, Any], total: str, current: str) -> float | None:
    """A count of ended requests, and what the one that runs has added to it."""
    ended = number(totals.get(total))
    return None if ended is None else ended + (number(inner(said, "current_request").get(current)) or 0.0)


def _phases(last: Mapping[str, Any]) -> Phases:
    cycles = positive(last.get("cycles"))
    if cycles is None:
        return ()
    told = ((name, positive(us)) for name, us in inner(last, "phase_timings_us").items() if name not in BEFORE_DECODING)
    return tuple((name, us / 1000.0 / cycles) for name, us in told if us is not None)
