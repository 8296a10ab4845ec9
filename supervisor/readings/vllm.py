"""vLLM: ``/metrics``."""

from __future__ import annotations

from supervisor.readings.numbers import count, share
from supervisor.readings.prometheus import families
from supervisor.readings.reading import Reading, Totals

_OWN = "vllm:"
_SPECULATION = f"{_OWN}spec_decode_num_"
_STARTED = "process_start_time_seconds"


def vllm_metrics(body: bytes) -> Reading | None:
    """Sums over all its engines."""
    told = families(body)
    if told is None or not told.has(_OWN):
        return None
    drafts, taken = told.sum(f"{_SPECULATION}drafts_total"), told.sum(f"{_SPECULATION}accepted_tokens_total")
    started = told.sum(_STARTED)
    return Reading(
        running=count(told.sum(f"{_OWN}num_requests_running")),
        queued=count(told.sum(f"{_OWN}num_requests_waiting")),
        cache_hit=share(told.sum(f"{_OWN}prefix_cache_hits_total"), told.sum(f"{_OWN}prefix_cache_queries_total")),
        identity=None if started is None else f"{_STARTED} {started:.2f}",
        totals=Totals(
            tokens=told.sum(f"{_OWN}generation_tokens_total"),
            decode_s=told.sum(f"{_OWN}request_decode_time_seconds_sum"),
            prompt_tokens=told.sum(f"{_OWN}prompt_tokens_total"),
            prompt_s=told.sum(f"{_OWN}request_prefill_time_seconds_sum"),
            steps=drafts,
            step_tokens=drafts + taken if drafts is not None and taken is not None else None,
            accepted=told.by_number(f"{_SPECULATION}accepted_tokens_per_pos_total", ("position", "pos")),
        ),
    )
