"""The blocks inside a lane. Names and defaults are those of lanes.yaml; durations become seconds, sizes bytes."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator

from supervisor.settings.block import Block, key
from supervisor.settings.numbers import (
    Count,
    CountOrNull,
    Duration,
    DurationOrAuto,
    DurationOrNull,
    DurationOrOff,
    DurationOrZero,
    Ratio,
    Share,
    SizeOrNull,
    SizeOrZero,
    SizeOrZeroOrAuto,
    TokenCount,
)
from supervisor.settings.quiet_hours import QuietHours, parse_quiet_hours
from supervisor.settings.texts import Choice, LocationOrNull, TextOrNull


class SpeculationSettings(Block):
    """How our engine drafts tokens ahead."""

    method: Choice[Literal["auto", "off", "ngram", "draft", "dflash", "mtp"]] = key(
        "auto", "How tokens are drafted; `auto` takes what the model brings, and nothing where that is faster."
    )
    draft: LocationOrNull = key(None, "Folder of the draft model, for `draft` and `dflash`.")
    max_tokens: CountOrNull = key(None, "Most tokens drafted in a step; null leaves it to the engine.")


class PrefixSettings(Block):
    """Our engine's prefix cache."""

    ram: SizeOrZeroOrAuto = key("auto", "Memory for the prefix cache; `auto` leaves it to the engine, `0B` is off.")
    disk: SizeOrZero = key("8GB", "Disk for the prefix cache; `0B` is off.")
    handoff: SizeOrZero = key("4GB", "Most that is saved before a recycle and loaded after it; `0B` is off.")
    timeout: Duration = key("10s", "Longest time for a save or a load; then the recycle goes on without.")


class HoldSettings(Block):
    """How long a request may wait for a worker."""

    timeout: Duration = key("240s", "Then the answer is 503 with Retry-After. Node clients give up at 300 s.")
    comments_after: DurationOrOff = key("15s", "A held stream gets an SSE comment this often; `off` sends none.")


class MemorySettings(Block):
    """What a lane may take."""

    limit: SizeOrNull = key(None, "A worker that grows beyond this is recycled; null is no limit.")
    timeout: Duration = key("60s", "How long a start waits for 1.1 times the lane's peak to be available.")


class HangSettings(Block):
    """When a worker counts as hung."""

    after: Duration = key("90s", "No progress for this long, plus three times the estimated prefill time.")
    pulse: Duration = key("60s", "An idle worker is asked for one token this often.")


def _distinct(sizes: tuple[int, ...]) -> tuple[int, ...]:
    if not sizes:
        raise ValueError("is empty; give at least one prompt size")
    if len(set(sizes)) < len(sizes):
        raise ValueError("names a prompt size twice")
    return tuple(sorted(sizes))


class CanarySettings(Block):
    """The fixed prompt that measures a lane."""

    every: Duration = key("5m", "Time between two canaries.")
    prompt_tokens: Annotated[tuple[Count, ...], AfterValidator(_distinct)] = key(
        [256, 3072], "Prompt sizes, in tokens; each has its own baseline."
    )
    max_tokens: TokenCount = key(64, "Tokens generated in one run.")
    max_time: Duration = key("4s", "A run ends after this much generating.")
    idle_for: DurationOrZero = key("5s", "The lane must have been idle this long before a run.")
    timeout: DurationOrAuto = key(
        "auto", "Longest time for one run; `auto` is 3 times the lane's median run, within 10 to 30 s."
    )
    budget: Share = key("1%", "Most of the lane's time that canaries may take.")
    burst_budget: Share = key("2%", "The same while a suspicion is being checked.")
    hold: Duration = key("30s", "How long requests may be held for a forced run.")
    force_after: Duration = key("30m", "A lane that was never idle for this long is measured by a forced run.")
    host_check: Choice[Literal["auto", "off"]] = key(
        "auto", "Whether a run on a machine that is slow itself counts: `auto` looks, `off` judges regardless."
    )


class BaselineSettings(Block):
    """Up to when a worker counts as fresh: the earlier of the two."""

    fresh_for: Duration = key("10m", "A worker is fresh for this long.")
    fresh_requests: Count = key(20, "A worker is fresh for this many requests.")


class DegradedSettings(Block):
    """Ratios of the decode rate to the baseline."""

    below: Ratio = key(0.89, "Under this ratio a worker has aged.")
    severe: Ratio = key(0.50, "Under this ratio it has aged badly, and less proof is enough.")


class AfterSettings(Block):
    """Budgets of a worker; each is off unless given."""

    generated_tokens: CountOrNull = key(None, "Recycle after this many generated tokens.")
    requests: CountOrNull = key(None, "Recycle after this many requests.")
    uptime: DurationOrNull = key(None, "Recycle after this much uptime.")


def _window(text: str | None) -> str | None:
    if text is not None:
        parse_quiet_hours(text)
    return text


class RecycleSettings(Block):
    """When a worker may be replaced."""

    mode: Choice[Literal["auto", "advise", "off"]] = key(
        "auto", "`auto` recycles, `advise` only says that it would, `off` does neither."
    )
    max_per_hour: Count = key(2, "Most planned recycles in an hour; does not bind overlap.")
    max_per_day: Count = key(8, "Most planned recycles in a day; does not bind overlap.")
    min_uptime: DurationOrZero = key("10m", "A younger worker is not recycled for slowness.")
    wait_idle: DurationOrZero = key("15m", "How long a planned recycle waits for an idle moment with the gate open.")
    max_hold: Duration = key("240s", "How long new requests may be held for a planned recycle.")
    window: Annotated[TextOrNull, AfterValidator(_window)] = key(
        None, 'Hours in which planned recycles may happen, such as "01:00-06:00 Europe/Berlin"; null is always.'
    )
    learn: Choice[Literal["off", "on"]] = key(
        "off", "`on` learns how workers slow down with age, and replaces each at the age at which that has paid best."
    )
    verify_timeout: Duration = key("10m", "Then a recycle is recorded with what is known of the new worker.")
    after: AfterSettings = key({}, "Budgets after which a worker is recycled, slow or not; it drains like any other.")

    @property
    def quiet_hours(self) -> QuietHours | None:
        """The parsed ``window``."""
        return None if self.window is None else parse_quiet_hours(self.window)
