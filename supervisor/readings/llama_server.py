"""llama.cpp's llama-server: ``/metrics``, which it has with ``--metrics``."""

from __future__ import annotations

from supervisor.readings.numbers import count
from supervisor.readings.prometheus import families
from supervisor.readings.reading import Reading, Totals

_OWN = "llamacpp:"
_SPECULATION = f"{_OWN}spec_decode_num_"


def llama_metrics(body: bytes) -> Reading | None:
    """Its gauges of rates are means, so the rates are taken from its counts instead."""
    told = families(body)
    if told is None or not told.has(_OWN):
        return None
    drafts, taken = told.sum(f"{_SPECULATION}drafts_total"), told.sum(f"{_SPECULATION}accepted_tokens_total")
    return Reading(
        running=count(told.sum(f"{_OWN}requests_processing")),
        queued=count(told.sum(f"{_OWN}requests_deferred")),
        totals=Totals(
            tokens=told.sum(f"{_OWN}tokens_predicted_total"),
            decode_s=told.sum(f"{_OWN}tokens_predicted_seconds_total"),
            prompt_tokens=told.sum(f"{_OWN}prompt_tokens_total"),
            prompt_s=told.sum(f"{_OWN}prompt_seconds_total"),
            steps=drafts,
            step_tokens=drafts + taken if drafts is not None and taken is not None else None,
            accepted=told.by_number(f"{_SPECULATION}accepted_tokens_per_pos_total", ("position", "pos")),
        ),
    )
