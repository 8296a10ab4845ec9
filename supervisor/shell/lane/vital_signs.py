"""What can be told of one worker from outside: whether it is ready, whether it gets anywhere, what it uses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import aiohttp

from supervisor.core.health.hang import Progress
from supervisor.jsontext import decode
from supervisor.presets import PRESETS, HealthRule
from supervisor.settings import LaneSettings
from supervisor.shell.front.gate import Gate
from supervisor.shell.front.upstream import Upstream
from supervisor.shell.lane.canary_desk import CanaryDesk
from supervisor.shell.lane.self_report import SelfReport
from supervisor.shell.probing.probe import Trouble, one_token
from supervisor.shell.worker.attached import Process

HEALTH_TIMEOUT_S = 5.0
STATS_TIMEOUT_S = 1.0
STATS_SHARE = 0.125
"""Of hang.after: a worker that hangs does not answer /stats either, and is not to be found later for that."""
UNKNOWN_DECODE_TOK_S = 10.0
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
    canaries: CanaryDesk
    report: SelfReport
    is_hopeless: bool = False
    """Its health says that it will never serve, in the words of its preset."""
    has_answered: bool = False
    """Whether its health path was answered at all when it was last asked."""
    _last_counters: tuple[float, ...] = ()

    async def what_is_missing(self, patience_s: float) -> str:
        """Why it cannot serve yet, in words; empty once it is healthy, ours, and has answered one token."""
        unhealthy = await self.health()
        if unhealthy:
            return unhealthy
        if not self.process.listens_on(self.port):
            return f"something answers on port {self.port}, but it is not this worker"
        trouble = await self.pulse(patience_s)
        return trouble.detail if trouble else ""

    async def pulse(self, timeout_s: float) -> Trouble | None:
        """Ask for one token; what went wrong, or nothing."""
        return await one_token(
            self.upstream.session,
            self.upstream.url,
            model=self.lane.worker_model,
            kind=self.lane.kind,
            headers=self.upstream.headers,
            timeout_s=timeout_s,
        )

    async def progress(self, now: Callable[[], float]) -> Progress:
        """A look at whether it gets anywhere."""
        gate, generation = self.gate, self.upstream.generation
        if gate.inflight(generation):
            self._last_counters = await self.report.counters(self.stats_timeout_s)
        decode_tok_s = self.canaries.decode_tok_s or UNKNOWN_DECODE_TOK_S
        return Progress(
            at=now(),
            inflight=gate.inflight(generation),
            busy_since=gate.busy_since(generation),
            moved_at=max(gate.progress_at(generation) or 0.0, self.canaries.answered_at(generation)),
            counters=self._last_counters,
            cpu_s=self.process.cpu_seconds(),
            oldest_prompt_tokens=gate.longest_body(generation) // BYTES_A_TOKEN,
            prefill_tok_s=self.canaries.prefill_tok_s,
            expected_s=gate.most_silent_tokens(generation) / decode_tok_s,
            probe_silent_s=self.canaries.seat.silent_s(generation),
            pulse_timeout_s=self.canaries.timeout_s,
        )

    async def health(self, timeout_s: float = HEALTH_TIMEOUT_S) -> str:
        """What its health path says against it; empty if it is ready. ``has_answered`` tells silence from illness."""
        timeout = aiohttp.ClientTimeout(total=timeout_s)
        self.has_answered = False
        url = self.upstream.url + self.lane.health
        try:
            async with self.upstream.session.get(url, headers=self.upstream.headers, timeout=timeout) as answer:
                body = await answer.content.read(65536)
                self.has_answered = True
                rule = self.health_rule
                self.is_hopeless = _status_of(body) in rule.dead
                return "" if _is_ready(rule, answer.status, body) else _said(answer.status, body)
        except (aiohttp.ClientError, OSError):
            return "it does not listen yet"
        except TimeoutError:
            return f"{self.lane.health} does not answer within {timeout_s:g} s"

    @property
    def health_rule(self) -> HealthRule:
        """How the preset reads the body of its health."""
        return PRESETS[self.lane.preset].health if self.lane.preset else HealthRule()

    @property
    def stats_timeout_s(self) -> float:
        """How long /stats may take."""
        return min(STATS_TIMEOUT_S, STATS_SHARE * self.lane.hang.after)

    async def written(self) -> float | None:
        """Tokens that it has written in all, by its own count; None where it does not tell."""
        reading = await self.report.ask(self.stats_timeout_s)
        return reading.totals.tokens if reading else None


def _is_ready(rule: HealthRule, status: int, body: bytes) -> bool:
    """A 200 whose body does not contradict it."""
    said = _status_of(body)
    return status == 200 and said not in rule.dead and (not rule.ready or said in rule.ready)


def _status_of(body: bytes) -> str | None:
    said = (decode(body) or {}).get("status")
    return said if isinstance(said, str) else None


def _said(status: int, body: bytes) -> str:
    return f"its health says {status} {body[:200].decode(errors='replace')}".strip()
