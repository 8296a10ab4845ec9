"""What a reload says it will do, from two files alone."""

from __future__ import annotations

from supervisor.shell.reload import ReloadPlan, plan_reload
from tests.config.loading import loaded

LANE = "lanes: {chat: {command: [serve, '{port}']%s}}"


def plan(old: str, new: str) -> ReloadPlan:
    before = loaded(old).settings
    return plan_reload(before, loaded(new).settings, before)


def test_each_top_level_key_that_only_a_new_daemon_takes_up_is_named() -> None:
    lane = LANE % ""
    assert plan(lane, f"listen: 127.0.0.1:7500\nlog: {{level: debug}}\n{lane}").needs_restart == ("listen", "log")
    assert plan(lane, f"state_dir: /elsewhere\n{lane}").needs_restart == ("state_dir",)
    assert plan(lane, f"max_body: 1MB\nhistory: {{keep: 1d}}\n{lane}").needs_restart == ()


def test_a_threshold_updates_and_what_the_worker_was_started_with_recycles() -> None:
    assert plan(LANE % "", LANE % ", degraded: {below: 0.8}").lanes == {"chat": "updated"}
    assert plan(LANE % "", LANE % ", env: {A: b}").lanes == {"chat": "recycled"}
    assert plan(LANE % "", LANE % "").lanes == {"chat": "kept"}
