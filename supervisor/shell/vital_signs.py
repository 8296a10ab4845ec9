"""What can be told of one worker from outside: whether it is ready, whether it gets anywhere, what it uses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import aiohttp

from supervisor.core.hang import Progress
from supervisor.jsontext import decode
from supervisor.presets import PRESETS, HealthRule
from supervisor.settings import LaneSettings
from supervisor.shell.attached import Process
from supervisor.shell.gate import Gate
from supervisor.shell.probe import one_token
from supervisor.shell.upstream import Upstream

HEALTH_TIMEOUT_S = 5.0
STATS_TIMEOUT_S = 2.0
BYTES_A_TOKEN = 3
"""Of a request's body: few enough that a prompt is rather thought too long than too short."""


@dataclass
class VitalSigns:
    """Of one generation. Nothing here raises for what a worker does."""

    lane: LaneSettings
    process: Process
    upstream: Upstream
    port: int
    gate: Gate
    prefill_tok_s: Callable[[], float | None]
    _has_stats: bool = True

    async def what_is_missing(self, patience_s: float) -> str:
        """Why it cannot serve yet, in words; empty once it is healthy, ours, and has answered one token."""
        unhealthy = await self._health()
        if unhealthy:
            return unhealthy
        if not self.process.listens_on(self.port):
            return f"something answers on port {self.port}, but it is not this worker"
        return await self.pulse(patience_s)

    async def pulse(self, timeout_s: float) -> str:
        """Ask for one token; what went wrong, or nothing."""
        wrong = await one_token(
            self.upstream.session,
            self.upstream.url,
            model=self.lane.worker_model,
            kind=self.lane.kind,
            headers=self.upstream.headers,
            timeout_s=timeout_s,
        )
        return wrong or ""

    async def progress(self, at: float) -> Progress:
        """A look at whether it gets anywhere."""
        generation = self.upstream.generation
        inflight = self.gate.inflight(generation)
        moved_at = self.gate.progress_at(generation) or 0.0
        return Progress(
            at=at,
            inflight=inflight,
            counters=(moved_at, *(await self._counters() if inflight else ())),
            cpu_s=self.process.cpu_seconds(),
            oldest_prompt_tokens=self.gate.longest_body(generation) // BYTES_A_TOKEN,
            prefill_tok_s=self.prefill_tok_s(),
        )

    async def _health(self) -> str:
        timeout = aiohttp.ClientTimeout(total=HEALTH_TIMEOUT_S)
        url = self.upstream.url + self.lane.health
        try:
            async with self.upstream.session.get(url, headers=self.upstream.headers, timeout=timeout) as answer:
                body = await answer.content.read(65536)
                rule = PRESETS[self.lane.preset].health if self.lane.preset else HealthRule()
                return "" if _is_ready(rule, answer.status, body) else _said(answer.status, body)
        except (aiohttp.ClientError, OSError):
            return "it does not listen yet"
        except TimeoutError:
            return f"{self.lane.health} does not answer within {HEALTH_TIMEOUT_S:g} s"

    async def _counters(self) -> tuple[float, ...]:
        """Numbers of /stats that grow while it works; none where there is no /stats."""
        if not self._has_stats:
            return ()
        timeout = aiohttp.ClientTimeout(total=STATS_TIMEOUT_S)
        url = self.upstream.url + "/stats"
        try:
            async with self.upstream.session.get(url, headers=self.upstream.headers, timeout=timeout) as answer:
                if answer.status != 200:
                    self._has_stats = False
                    return ()
                stats = decode(await answer.content.read(262144)) or {}
        except (aiohttp.ClientError, OSError, TimeoutError):
            return ()
        return tuple(float(stats[key]) for key in ("generated_tokens", "prompt_tokens", "requests") if key in stats)


def _is_ready(rule: HealthRule, status: int, body: bytes) -> bool:
    """A 200 whose body does not contradict it."""
    return status == 200 and (not rule.ready or (decode(body) or {}).get("status") in rule.ready)


def _said(status: int, body: bytes) -> str:
    return f"its health says {status} {body[:200].decode(errors='replace')}".strip()
