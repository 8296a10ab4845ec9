"""Tokens a step of the worker gives, from /stats around a run: whether a slow run had slow steps, or barren ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import aiohttp

from supervisor.shell.front.upstream import Upstream

DEADLINE_S = 1.0
MOST_BYTES = 1_000_000


class StepCount(NamedTuple):
    """Since the worker began: tokens generated, and steps of speculation that gave them."""

    tokens: float
    cycles: float


class StepMeter:
    """One worker's; a worker without such numbers is not asked again."""

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream
        self._is_told = True

    async def count(self) -> StepCount | None:
        """The counts now; None where the worker does not tell."""
        if not self._is_told:
            return None
        timeout, headers = aiohttp.ClientTimeout(total=DEADLINE_S), self._upstream.headers
        try:
            url = self._upstream.url + "/stats"
            async with self._upstream.session.get(url, headers=headers, timeout=timeout) as answer:
                stats = await answer.json(content_type=None) if answer.status == 200 else None
        except (aiohttp.ClientError, TimeoutError, ValueError):
            return None
        count = count_in(stats) if isinstance(stats, Mapping) else None
        self._is_told = count is not None
        return count


def count_in(stats: Mapping[str, Any]) -> StepCount | None:
    """What /stats says of tokens and steps."""
    acceptance = stats.get("acceptance")
    cycles = acceptance.get("cycles") if isinstance(acceptance, Mapping) else None
    tokens = stats.get("generated_tokens")
    if isinstance(cycles, int | float) and isinstance(tokens, int | float):
        return StepCount(float(tokens), float(cycles))
    return None


def tokens_per_step(before: StepCount | None, after: StepCount | None) -> float | None:
    """Of the run in between; None where it had no steps of speculation."""
    if before is None or after is None or after.cycles <= before.cycles:
        return None
    return (after.tokens - before.tokens) / (after.cycles - before.cycles)
