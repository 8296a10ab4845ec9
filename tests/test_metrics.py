"""The Prometheus page: what it says is what the snapshot says, and what is not known is not said."""

from __future__ import annotations

from typing import Any

from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from supervisor.metrics import Metrics
from supervisor.shell.lane.recycle_totals import RecycleTotals


def recycle_totals() -> RecycleTotals:
    totals = RecycleTotals()
    for outcome, downtime_s in (("cured", 7.0), ("futile", 0.0), ("cured", 5.5)):
        totals.add({"trigger": "degraded", "outcome": outcome, "downtime_s": downtime_s})
    return totals


LANE: dict[str, Any] = {
    "name": "qwen",
    "state": "suspect",
    "worker": {"generation": 3, "memory_bytes": 24_000_000_000, "uptime_s": 3600.5},
    "inflight": 2,
    "queued": 0,
    "baseline": {"decode_tok_s": 66.5, "by_prompt_tokens": {"256": 66.5, "3072": 60.0}},
    "last_probe": {"decode_tok_s": 20.5, "void": None, "host_slowness": 0.04},
    "verdict": {"status": "degraded", "ratio": 0.31, "interval": [0.29, 0.33], "by_prompt_tokens": {"256": 20.5}},
    "totals": {
        "requests": 100,
        "failed": 1,
        "held": 7,
        "cut": 0,
        "replayed": 2,
        "generated_tokens": 250_000,
        "canaries": {"clean": 40, "client_arrived": 3},
        **recycle_totals().to_json(),
    },
}
IDLE_LANE: dict[str, Any] = {
    "name": 'odd "name"\n',
    "state": "unloaded",
    "worker": None,
    "inflight": 0,
    "queued": 0,
    "baseline": None,
    "last_probe": None,
    "verdict": {"status": "unknown", "ratio": None, "interval": None},
    "totals": {},
}


def fleet_of(*lanes: dict[str, Any]) -> dict[str, Any]:
    return {
        "lanes": list(lanes),
        "version": "0.1.0",
        "started_at": "2026-01-05T14:03:00+01:00",
        "journal_trouble": "disk full",
        "history_trouble": None,
        "loop_lag_ms": 2.0,
    }


def read(fleet: dict[str, Any]) -> dict[tuple[str, ...], float]:
    """Every sample by its name and its label values, these in the order of the labels' names."""
    page, content_type = Metrics(lambda: fleet).page()
    assert content_type.startswith("text/plain")
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in parse_text(page.decode())
        for sample in family.samples
    }


def test_every_number_of_a_lane_is_on_the_page() -> None:
    page = read(fleet_of(LANE))
    expected = {
        ("freshlane_lane_decode_tokens_per_second", "qwen", "256"): 20.5,
        ("freshlane_lane_baseline_tokens_per_second", "qwen", "256"): 66.5,
        ("freshlane_lane_baseline_tokens_per_second", "qwen", "3072"): 60.0,
        ("freshlane_lane_decode_ratio", "qwen"): 0.31,
        ("freshlane_lane_decode_ratio_low", "qwen"): 0.29,
        ("freshlane_lane_decode_ratio_high", "qwen"): 0.33,
        ("freshlane_lane_host_slowness", "qwen"): 0.04,
        ("freshlane_lane_inflight_requests", "qwen"): 2,
        ("freshlane_lane_queued_requests", "qwen"): 0,
        ("freshlane_lane_worker_generation", "qwen"): 3,
        ("freshlane_lane_worker_memory_bytes", "qwen"): 24e9,
        ("freshlane_lane_worker_uptime_seconds", "qwen"): 3600.5,
        ("freshlane_lane_requests_total", "qwen"): 100,
        ("freshlane_lane_requests_failed_total", "qwen"): 1,
        ("freshlane_lane_requests_held_total", "qwen"): 7,
        ("freshlane_lane_requests_cut_total", "qwen"): 0,
        ("freshlane_lane_requests_replayed_total", "qwen"): 2,
        ("freshlane_lane_generated_tokens_total", "qwen"): 250_000,
        ("freshlane_lane_downtime_seconds_total", "qwen"): 12.5,
        ("freshlane_lane_canary_runs_total", "qwen", "clean"): 40,
        ("freshlane_lane_canary_runs_total", "qwen", "client_arrived"): 3,
        ("freshlane_lane_recycles_total", "qwen", "futile", "degraded"): 1,
        ("freshlane_lane_recycles_total", "qwen", "cured", "degraded"): 2,
        ("freshlane_lane_state", "qwen", "suspect"): 1,
        ("freshlane_lane_state", "qwen", "serving"): 0,
        ("freshlane_lane_verdict", "qwen", "degraded"): 1,
        ("freshlane_lane_verdict", "qwen", "healthy"): 0,
        ("freshlane_build_info", "0.1.0"): 1,
        ("freshlane_loop_lag_seconds",): 0.002,
        ("freshlane_store_trouble", "journal"): 1,
        ("freshlane_store_trouble", "history"): 0,
        ("freshlane_start_time_seconds",): 1767618180.0,
    }
    assert {key: page[key] for key in expected} == expected


def test_what_is_not_known_has_no_line_and_odd_names_survive() -> None:
    page = read(fleet_of(IDLE_LANE))
    names = {key[0] for key in page}
    assert "freshlane_lane_decode_tokens_per_second" not in names
    assert "freshlane_lane_decode_ratio" not in names
    assert "freshlane_lane_requests_total" not in names
    assert page["freshlane_lane_state", 'odd "name"\n', "unloaded"] == 1


def test_a_fleet_without_lanes_has_a_page_too() -> None:
    assert read(fleet_of())["freshlane_build_info", "0.1.0"] == 1


def test_a_scraper_that_asks_for_openmetrics_gets_it() -> None:
    page, content_type = Metrics(lambda: fleet_of(LANE, IDLE_LANE)).page("application/openmetrics-text; version=1.0.0")
    assert content_type.startswith("application/openmetrics-text")
    families = parse_openmetrics(page.decode())  # type: ignore[no-untyped-call]
    names = {family.name for family in families}
    assert {"freshlane_lane_state", "freshlane_lane_requests", "freshlane_build"} <= names
