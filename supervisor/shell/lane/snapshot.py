"""A lane as the API shows it: read from the machine and the gate, never from a copy that could grow stale."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from statistics import median
from typing import Any

from supervisor.core.lane.lane import Lane
from supervisor.core.samples import Sample, Status, Verdict
from supervisor.core.workers import Worker
from supervisor.settings import LaneSettings
from supervisor.shell.front.gate import Gate
from supervisor.shell.machine.clock import Clock


def lane_snapshot(
    settings: LaneSettings, lane: Lane, gate: Gate, clock: Clock, *, totals: Mapping[str, Any], trouble: str
) -> dict[str, Any]:
    """The document of ``/api/lanes/{lane}``; ``trouble`` says why a starting worker is not ready yet."""
    body, workers = lane.body, lane.body.workers
    measurer, recycler = lane.organs.measurer, lane.organs.recycler
    return {
        "name": body.name,
        "model": settings.worker_model,
        "aliases": list(settings.aliases),
        "state": body.state.value,
        "since": clock.said(body.since),
        "reason": f"{body.reason}: {trouble}" if trouble else body.words,
        "next_action": lane.next_action,
        "wish": body.wish.value,
        "worker": _worker(workers.active, clock),
        "candidate": _worker(workers.candidate, clock),
        "retiring": [_worker(worker, clock) for worker in workers.retiring.values()],
        "recycling": recycler.under_way.step.value if recycler.under_way else None,
        "inflight": gate.inflight(),
        "queued": gate.queued,
        "baseline": lane.organs.judge.baseline_summary(),
        "degraded": {"below": settings.degraded.below, "severe": settings.degraded.severe},
        "last_probe": _probe(measurer.last_sample, clock),
        "verdict": _verdict(lane.organs.judge.verdict),
        "said": list(body.life.said_by(workers.active.generation).parts) if workers.active else [],
        "models": _models(settings, lane, clock),
        "clients": measurer.passive.summary(_canary_tok_s(lane.organs.judge.verdict)),
        "totals": dict(totals),
    }


def _worker(worker: Worker | None, clock: Clock) -> dict[str, Any] | None:
    if worker is None or worker.spawned_at is None:
        return None
    return {
        "pid": worker.pid,
        "port": worker.port,
        "generation": worker.generation,
        "started_at": clock.said(worker.spawned_at),
        "uptime_s": round(worker.uptime_s(clock.now()), 1),
        "memory_bytes": worker.memory_bytes,
        "requests": worker.requests,
        "generated_tokens": worker.generated_tokens,
    }


def _probe(sample: Sample | None, clock: Clock) -> dict[str, Any] | None:
    if sample is None:
        return None
    return {**asdict(sample), "at": clock.said(sample.at)}


def _models(settings: LaneSettings, lane: Lane, clock: Clock) -> dict[str, Any]:
    """Each further model of the worker, judged apart."""
    last = lane.organs.measurer.last_of_models
    return {
        name: {
            "model": settings.serves.get(name),
            "baseline": baseline,
            "last_probe": _probe(last.get(name), clock),
            "verdict": _verdict(verdict),
        }
        for name, (verdict, baseline) in lane.organs.judge.by_model().items()
    }


def _verdict(verdict: Verdict) -> dict[str, Any]:
    return {
        "model": verdict.model,
        "status": verdict.status.value,
        "ratio": verdict.ratio,
        "interval": list(verdict.interval) if verdict.interval else None,
        "confidence": verdict.confidence,
        "reason": verdict.reason,
        "decode_tok_s": verdict.decode_tok_s,
        "by_prompt_tokens": {str(size): rate for size, rate in verdict.by_prompt_tokens},
        "prefill": _prefill(verdict.prefill) if verdict.prefill else None,
    }


def _canary_tok_s(verdict: Verdict) -> float | None:
    """What streams may be held against: the rate of a worker that is found well."""
    return verdict.decode_tok_s if verdict.status is Status.HEALTHY else None


def _prefill(reading: Verdict) -> dict[str, Any]:
    return {
        "status": reading.status.value,
        "ratio": reading.ratio,
        "interval": list(reading.interval) if reading.interval else None,
        "tok_s": median(reading.samples) if reading.samples else None,
        "reason": reading.reason,
    }
