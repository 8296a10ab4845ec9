"""A lane's settings as the core wants them."""

from __future__ import annotations

import pytest

from supervisor.config import lane_terms
from supervisor.core.terms import LaneTerms, Replace
from tests.config.loading import loaded

MEMORY = 100 * 10**9


def terms(body: str, top: str = "", *, is_macos: bool = False) -> LaneTerms:
    settings = loaded(f"lanes: {{a: {{{body}}}}}\n{top}").settings
    return lane_terms(settings, settings.lanes["a"], memory_total_bytes=MEMORY, is_macos=is_macos)


def test_a_lane_without_keys_lives_under_the_cores_own_defaults_and_hands_its_prefix_on() -> None:
    assert terms("model: m") == LaneTerms(memory_budget_bytes=80 * 10**9, handoff_s=10.0)


def test_a_given_budget_is_taken_as_it_is() -> None:
    assert terms("model: m", "fleet: {memory_budget: 5GB}").memory_budget_bytes == 5 * 10**9


@pytest.mark.parametrize(
    ("body", "is_macos", "replace"),
    [
        ("model: m", False, None),
        ("model: m", True, Replace.IN_PLACE),
        ("model: m, replace: overlap", False, Replace.OVERLAP),
        ("model: m, replace: overlap", True, Replace.OVERLAP),
        ("model: m, replace: in_place", False, Replace.IN_PLACE),
        ("command: [s], port: 9", False, Replace.IN_PLACE),
        ("preset: omlx", False, Replace.IN_PLACE),
        ("attach: http://h", False, Replace.IN_PLACE),
    ],
)
def test_how_a_worker_is_replaced(body: str, is_macos: bool, replace: Replace | None) -> None:
    assert terms(body, is_macos=is_macos).replace == replace


@pytest.mark.parametrize(
    ("body", "is_advised_only", "is_off"),
    [
        ("model: m", False, False),
        ("model: m, recycle: {mode: advise}", True, False),
        ("model: m, recycle: {mode: off}", False, True),
        ("attach: http://h", True, False),
        ("attach: http://h, restart_command: [x]", False, False),
        ("attach: http://h, recycle: {mode: off}", False, True),
    ],
)
def test_what_freshlane_may_do_about_a_slow_worker(body: str, is_advised_only: bool, is_off: bool) -> None:
    recycle = terms(body).recycle
    assert (recycle.is_advised_only, recycle.is_off) == (is_advised_only, is_off)


def test_every_wait_and_limit_reaches_the_core() -> None:
    found = terms(
        "model: m, start: on_demand, idle_unload: 1m, start_timeout: 2m, warm_timeout: 3s, drain_timeout: 4s,"
        " stop_timeout: 5s, kill: never, memory: {limit: 6GB, timeout: 7s}, canary: {every: 8s, prompt_tokens: [9, 8]},"
        " baseline: {fresh_for: 10s, fresh_requests: 11}, degraded: {below: 0.8, severe: 0.4},"
        " recycle: {max_hold: 12s, after: {generated_tokens: 1k, requests: 13, uptime: 1d}}",
        "fleet: {shutdown_timeout: 14s}",
    )
    assert (found.is_on_demand, found.idle_unload_s, found.may_kill) == (True, 60, False)
    assert (found.start_timeout_s, found.warm_timeout_s, found.drain_timeout_s, found.stop_timeout_s) == (120, 3, 4, 5)
    assert (found.memory_limit_bytes, found.memory_timeout_s, found.shutdown_timeout_s) == (6 * 10**9, 7, 14)
    assert (found.canary.every_s, found.canary.prompt_tokens) == (8, (8, 9))
    assert (found.baseline.fresh_for_s, found.baseline.fresh_requests) == (10, 11)
    assert (found.degraded.below, found.degraded.severe) == (0.8, 0.4)
    after = (found.recycle.after_generated_tokens, found.recycle.after_requests, found.recycle.after_uptime_s)
    assert (found.recycle.max_hold_s, *after) == (12, 1000, 13, 86400)
