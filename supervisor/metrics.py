"""The Prometheus page: computed from the fleet's snapshot at each scrape, so that it can never disagree with /api.

A number that is not known (no worker, no baseline yet) has no line. Totals count since the daemon began.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import Collector

from supervisor.core.samples import Status
from supervisor.core.states import LaneState

Snapshot = Mapping[str, Any]
Value = float | None
Family = GaugeMetricFamily | CounterMetricFamily

STATES = tuple(state.value for state in LaneState)
STATUSES = tuple(status.value for status in Status)

GAUGES: tuple[tuple[str, str, tuple[str | int, ...]], ...] = (
    ("decode_ratio", "Worker over baseline: 0.31 is a worker at 31 % of a fresh one.", ("verdict", "ratio")),
    ("decode_ratio_low", "Lower end of the interval of decode_ratio.", ("verdict", "interval", 0)),
    ("decode_ratio_high", "Upper end of the interval of decode_ratio.", ("verdict", "interval", 1)),
    (
        "host_slowness",
        "How much slower the host was at the last canary: logarithm, 0 is as usual.",
        ("last_probe", "host_slowness"),
    ),
    ("inflight_requests", "Requests that a worker answers now.", ("inflight",)),
    ("queued_requests", "Requests that wait for a worker now.", ("queued",)),
    ("worker_generation", "How many workers this lane has had.", ("worker", "generation")),
    ("worker_memory_bytes", "Memory of the active worker's process tree.", ("worker", "memory_bytes")),
    ("worker_uptime_seconds", "Age of the active worker.", ("worker", "uptime_s")),
)
"""What a lane's gauges are called, mean, and are read from."""

RATES: tuple[tuple[str, str, str], ...] = (
    ("decode_tokens_per_second", "Decode rate of the worker's last canary runs, by prompt size.", "verdict"),
    ("baseline_tokens_per_second", "Decode rate of fresh workers of this lane, by prompt size.", "baseline"),
)
"""Rates of different prompt sizes must not be compared, so each has its size for a label."""

COUNTERS: tuple[tuple[str, str, str], ...] = (
    ("requests", "Requests sent to a worker, each once.", "requests"),
    ("requests_failed", "Requests that got an error of freshlane's own.", "failed"),
    ("requests_held", "Requests that waited because there was no worker.", "held"),
    ("requests_cut", "Answers that freshlane ended before their end.", "cut"),
    ("requests_replayed", "Requests sent again after their worker died.", "replayed"),
    ("generated_tokens", "Tokens generated for clients.", "generated_tokens"),
    ("downtime_seconds", "Time in which a recycle left the lane without a serving worker.", "downtime_s"),
)


class Metrics:
    """The page. ``snapshot`` gives the fleet as /api shows it."""

    def __init__(self, snapshot: Callable[[], Snapshot]) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(_FleetCollector(snapshot))
        ProcessCollector(namespace="freshlane", registry=self._registry)

    def page(self, accept: str = "") -> tuple[bytes, str]:
        """The page and its content type, in the format that the ``Accept`` header asks for."""
        encoder, content_type = choose_encoder(accept)
        return encoder(self._registry), content_type


class _FleetCollector(Collector):
    def __init__(self, snapshot: Callable[[], Snapshot]) -> None:
        self._snapshot = snapshot

    def describe(self) -> Iterable[Metric]:
        return ()

    def collect(self) -> Iterator[Metric]:
        fleet = self._snapshot()
        lanes: list[Snapshot] = list(fleet.get("lanes") or ())
        yield from _daemon(fleet)
        yield _one_of("state", "Whether the lane is in this state: 1 for one of them, 0 for the others.", STATES, lanes)
        yield _one_of("verdict", "What the judge says of the worker: 1 for one, 0 for the others.", STATUSES, lanes)
        for name, meaning, part in RATES:
            yield _rates(name, meaning, part, lanes)
        for name, meaning, path in GAUGES:
            yield _by_lane(GaugeMetricFamily, name, meaning, ((lane["name"], _at(lane, *path)) for lane in lanes))
        for name, meaning, key in COUNTERS:
            yield _by_lane(
                CounterMetricFamily, name, meaning, ((lane["name"], _at(lane, "totals", key)) for lane in lanes)
            )
        yield _canary_runs(lanes)
        yield _recycles(lanes)


def _daemon(fleet: Snapshot) -> Iterator[Metric]:
    yield InfoMetricFamily("freshlane_build", "The daemon.", {"version": str(fleet.get("version", ""))})
    started_at = fleet.get("started_at")
    if started_at:
        start = datetime.fromisoformat(str(started_at)).timestamp()
        yield GaugeMetricFamily("freshlane_start_time_seconds", "When the daemon began, in Unix time.", start)
    lag = fleet.get("loop_lag_ms")
    if lag is not None:
        yield GaugeMetricFamily("freshlane_loop_lag_seconds", "How late the daemon's event loop is.", lag / 1000)
    trouble = GaugeMetricFamily(
        "freshlane_store_trouble", "1 while a store cannot be written and its news wait in memory.", labels=["store"]
    )
    for store in ("journal", "history"):
        trouble.add_metric([store], 1.0 if fleet.get(f"{store}_trouble") else 0.0)
    yield trouble


def _one_of(label: str, meaning: str, words: Iterable[str], lanes: Iterable[Snapshot]) -> Metric:
    family = GaugeMetricFamily(f"freshlane_lane_{label}", meaning, labels=["lane", label])
    for lane in lanes:
        current = lane.get(label)
        word_now = current.get("status") if isinstance(current, Mapping) else current
        for word in words:
            family.add_metric([lane["name"], word], 1.0 if word == word_now else 0.0)
    return family


def _by_lane(kind: type[Family], name: str, meaning: str, values: Iterable[tuple[str, Value]]) -> Metric:
    family = kind(f"freshlane_lane_{name}", meaning, labels=["lane"])
    for lane, value in values:
        if value is not None:
            family.add_metric([lane], value)
    return family


def _rates(name: str, meaning: str, part: str, lanes: Iterable[Snapshot]) -> Metric:
    family = GaugeMetricFamily(f"freshlane_lane_{name}", meaning, labels=["lane", "prompt_tokens"])
    for lane in lanes:
        for size, rate in ((lane.get(part) or {}).get("by_prompt_tokens") or {}).items():
            if rate is not None:
                family.add_metric([lane["name"], str(size)], rate)
    return family


def _canary_runs(lanes: Iterable[Snapshot]) -> Metric:
    family = CounterMetricFamily(
        "freshlane_lane_canary_runs", "Canary runs: clean, or why a run was void.", labels=["lane", "result"]
    )
    for lane in lanes:
        for result, count in _table(lane, "canaries").items():
            family.add_metric([lane["name"], str(result)], count)
    return family


def _recycles(lanes: Iterable[Snapshot]) -> Metric:
    meaning = "Recycles by what set them off and what came of them."
    family = CounterMetricFamily("freshlane_lane_recycles", meaning, labels=["lane", "trigger", "outcome"])
    for lane in lanes:
        for trigger, outcomes in _table(lane, "recycles_by_trigger").items():
            for outcome, count in outcomes.items():
                family.add_metric([lane["name"], str(trigger), str(outcome)], count)
    return family


def _table(lane: Snapshot, key: str) -> Mapping[str, Any]:
    table: Mapping[str, Any] = lane["totals"].get(key) or {}
    return table


def _at(document: Any, *path: str | int) -> Value:
    """The number at ``path``; None where something on the way is not there."""
    for step in path:
        if isinstance(step, int):
            document = document[step] if document else None
        else:
            document = document.get(step) if isinstance(document, Mapping) else None
    return float(document) if isinstance(document, (int, float)) else None
