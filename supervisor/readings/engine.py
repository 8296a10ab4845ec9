"""Our engine, and any worker that has the optional ``/stats`` of the worker protocol."""

from __future__ import annotations

from supervisor.readings.numbers import count, document, inner, number, positive
from supervisor.readings.reading import Reading, Totals


def engine_stats(body: bytes) -> Reading | None:
    """What it tells; its counts are what rates are made of."""
    said = document(body)
    if said is None:
        return None
    acceptance, phases = inner(said, "acceptance"), inner(said, "phase_seconds")
    tokens, cycles = number(said.get("generated_tokens")), number(acceptance.get("cycles"))
    spent = tuple((name, seconds) for name, told in phases.items() if (seconds := number(told)) is not None)
    return Reading(
        running=count(said.get("inflight")),
        memory_bytes=positive(inner(said, "memory_bytes").get("active")),
        uptime_s=number(said.get("uptime_s")),
        totals=Totals(
            tokens=tokens,
            decode_s=sum(seconds for _, seconds in spent) if spent else None,
            prompt_tokens=number(said.get("prompt_tokens")),
            prompt_s=number(said.get("prefill_seconds")),
            steps=cycles,
            step_tokens=tokens,
            phases_s=spent,
        ),
    )
