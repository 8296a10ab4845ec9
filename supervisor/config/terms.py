"""A lane's settings as the core wants them: every `auto` resolved that does not need a measurement."""

from __future__ import annotations

from supervisor.core.terms import (
    BaselineTerms,
    CanaryTerms,
    DegradedTerms,
    LaneTerms,
    RecycleTerms,
    RemedyName,
    Replace,
)
from supervisor.presets import PRESETS
from supervisor.settings import LaneSettings, Settings

BUDGET_OF_MACHINE = 0.8
"""What `fleet.memory_budget: auto` takes of the machine's memory."""


def lane_terms(settings: Settings, lane: LaneSettings, *, memory_total_bytes: int, is_macos: bool) -> LaneTerms:
    """The terms of ``lane`` on a machine with ``memory_total_bytes``; pure."""
    budget = settings.fleet.memory_budget
    return LaneTerms(
        canary=_canary(lane),
        baseline=BaselineTerms(fresh_for_s=lane.baseline.fresh_for, fresh_requests=lane.baseline.fresh_requests),
        degraded=DegradedTerms(below=lane.degraded.below, severe=lane.degraded.severe),
        recycle=_recycle(lane),
        is_on_demand=lane.start == "on_demand",
        idle_unload_s=lane.idle_unload,
        start_timeout_s=lane.start_timeout,
        warm_timeout_s=lane.warm_timeout,
        drain_timeout_s=lane.drain_timeout,
        shutdown_timeout_s=settings.fleet.shutdown_timeout,
        stop_timeout_s=lane.stop_timeout,
        handoff_s=0.0 if lane.is_attached or not lane.prefix.handoff else lane.prefix.timeout,
        remedies=_remedies(lane),
        may_kill=lane.kill == "if_hung",
        can_restart=_can_restart(lane),
        replace=_replace(lane, is_macos=is_macos),
        memory_budget_bytes=int(memory_total_bytes * BUDGET_OF_MACHINE) if budget is None else budget,
        memory_limit_bytes=lane.memory.limit,
        memory_timeout_s=lane.memory.timeout,
    )


def _canary(lane: LaneSettings) -> CanaryTerms:
    canary = lane.canary
    return CanaryTerms(
        every_s=canary.every,
        prompt_tokens=canary.prompt_tokens,
        models=tuple(lane.serves),
        max_tokens=canary.max_tokens,
        max_time_s=canary.max_time,
        idle_for_s=canary.idle_for,
        budget=canary.budget,
        burst_budget=canary.burst_budget,
        hold_s=canary.hold,
        force_after_s=canary.force_after,
    )


def _recycle(lane: LaneSettings) -> RecycleTerms:
    recycle = lane.recycle
    return RecycleTerms(
        is_advised_only=recycle.mode == "advise" or (recycle.mode == "auto" and not _can_restart(lane)),
        is_off=recycle.mode == "off",
        max_per_hour=recycle.max_per_hour,
        max_per_day=recycle.max_per_day,
        min_uptime_s=recycle.min_uptime,
        wait_idle_s=recycle.wait_idle,
        max_hold_s=recycle.max_hold,
        verify_timeout_s=recycle.verify_timeout,
        learns=recycle.learn == "on",
        after_generated_tokens=recycle.after.generated_tokens,
        after_requests=recycle.after.requests,
        after_uptime_s=recycle.after.uptime,
    )


def _remedies(lane: LaneSettings) -> tuple[RemedyName, ...]:
    """A known server has those of its preset; any other is asked in the words of the worker protocol."""
    offered = PRESETS[lane.preset].remedies if lane.preset else tuple(RemedyName)
    return tuple(name for name in RemedyName if name in offered)


def _can_restart(lane: LaneSettings) -> bool:
    return not lane.is_attached or lane.restart_command is not None


def _replace(lane: LaneSettings, *, is_macos: bool) -> Replace | None:
    """An attached server and one on a fixed port can only go first. A wish for overlap on macOS is a person's own."""
    if lane.port is not None or lane.is_attached:
        return Replace.IN_PLACE
    if lane.replace == "auto":
        return Replace.IN_PLACE if is_macos else None
    return Replace(lane.replace)
