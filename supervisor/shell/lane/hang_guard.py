"""Watches a ready worker for a hang: looks at its progress, and asks for one token when it is idle."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import structlog

from supervisor.core.health.hang import Finding, Fine, HangTerms, HangWatch, Hung, SendPulse
from supervisor.core.samples import Void
from supervisor.settings import LaneSettings
from supervisor.shell.lane.canary_desk import CanaryDesk
from supervisor.shell.lane.doubts import Moment, doubt, moment
from supervisor.shell.lane.surroundings import Surroundings
from supervisor.shell.lane.vital_signs import VitalSigns
from supervisor.shell.probing.probe import Trouble

log = structlog.get_logger(__name__)

CLIENT_LOOK_S = 0.05


@dataclass(frozen=True, slots=True)
class Miss:
    """A pulse that brought nothing, and what went wrong."""

    detail: str
    is_silence: bool = False
    """Its health did not answer either: no neighbour excuses that."""
    is_busy: bool = False
    """It said that it has no room now."""
    is_at_work: bool = False
    """It has written tokens meanwhile, for a client that left or one of somebody else's: busy, not hung."""


@dataclass(frozen=True, slots=True)
class TakenBack:
    """A pulse that gave way to a client."""


class HangGuard:
    """Of one worker. ``hung`` is called once, with the evidence."""

    def __init__(
        self,
        lane: LaneSettings,
        signs: VitalSigns,
        around: Surroundings,
        canaries: CanaryDesk,
        hung: Callable[[str], None],
    ) -> None:
        self._lane = lane
        self._signs = signs
        self._around = around
        self._canaries = canaries
        self._hung = hung
        self._watch = HangWatch(HangTerms(lane.hang.after, lane.hang.pulse), self._now())
        self._looked = moment(around.host, self._now())
        self._busy_since: float | None = None

    def take(self, lane: LaneSettings) -> None:
        """A reload changed how long a worker may be silent."""
        self._lane = lane
        self._watch.terms = HangTerms(lane.hang.after, lane.hang.pulse)

    async def run(self) -> None:
        """Look whenever a look may find something, until the worker hangs."""
        while True:
            finding = await self._look()
            if isinstance(finding, Hung):
                break
            await asyncio.sleep(self._watch.look_in(self._now()))
        self._hung(finding.evidence)

    async def _look(self) -> Finding:
        """Take one look, and do what it asks for."""
        progress = await self._signs.progress(self._now)
        found = doubt(self._around.host, self._looked)
        if found:
            is_late = found.void is Void.LOOP_LAG
            lag_s = self._around.host.loop_lag.worst_since(self._looked.at)
            self._watch.blind(progress.at, lag_s if is_late else progress.at - self._looked.at)
        self._looked = moment(self._around.host, progress.at)
        finding = self._watch.look(progress)
        if progress.probe_silent_s is not None and not isinstance(finding, Fine):
            self._canaries.cancel(Void.LANE_BUSY, "it kept silent, and the worker is asked whether it lives")
        while isinstance(finding, SendPulse):
            finding = await self._pulse()
        return finding

    async def _pulse(self) -> Finding:
        async with self._canaries.seat.taken(self._signs.upstream.generation):
            began = moment(self._around.host, self._now())
            outcome = await self._unless_a_client_comes()
        return self._judged(outcome, began)

    def _judged(self, outcome: Miss | TakenBack | None, began: Moment) -> Finding:
        now = self._now()
        if isinstance(outcome, TakenBack):
            self._watch.pulse_taken_back()
            return Fine()
        if outcome is None or outcome.is_at_work:
            self._watch.pulse_answered(now)
            return Fine()
        reason = self._excuse(outcome, began, now - began.at)
        if reason:
            log.info("pulse_void", lane=self._lane.name, reason=reason, missed=outcome.detail)
            self._watch.pulse_void(now)
            return Fine()
        log.warning("pulse_missed", lane=self._lane.name, detail=outcome.detail)
        return self._watch.pulse_missed(now, outcome.detail)

    def _excuse(self, outcome: Miss, began: Moment, waited_s: float) -> str | None:
        """Why a miss does not count: this daemon, the host or a neighbour on the same device was to blame."""
        found = doubt(self._around.host, began, waited_s=waited_s)
        if found:
            return found.detail
        if outcome.is_busy:
            return "the server is busy"
        return None if outcome.is_silence else self._neighbours()

    async def _unless_a_client_comes(self) -> Miss | TakenBack | None:
        async with asyncio.TaskGroup() as group:
            pulse = group.create_task(self._ask())
            while not pulse.done():
                await asyncio.wait({pulse}, timeout=CLIENT_LOOK_S)
                if not pulse.done() and self._signs.gate.inflight():
                    pulse.cancel()
                    return TakenBack()
        return pulse.result()

    async def _ask(self) -> Miss | None:
        """One token; beside traffic of a neighbour, which a token would disturb, only whether health answers at all.

        Where the preset knows words for a worker that will never serve again, its health is asked in any case.
        """
        if self._neighbours():
            illness = await self._signs.health(self._canaries.timeout_s)
            return None if self._signs.has_answered and not self._signs.is_hopeless else Miss(illness, is_silence=True)
        trouble, illness, written = await self._asked()
        if self._signs.is_hopeless:
            return Miss(illness, is_silence=True)
        if trouble is None:
            self._busy_since = None
            return None
        is_at_work = written is not None and (await self._signs.written() or 0.0) > written
        return Miss(trouble.detail, is_busy=self._is_only_busy(trouble.is_busy), is_at_work=is_at_work)

    async def _asked(self) -> tuple[Trouble | None, str, float | None]:
        """All that is asked for a pulse, at once, and with it done in the time that one may take."""
        signs, timeout_s = self._signs, self._canaries.timeout_s
        patience_s = max(timeout_s - signs.stats_timeout_s, signs.stats_timeout_s)
        async with asyncio.TaskGroup() as group:
            pulse = group.create_task(signs.pulse(patience_s))
            written = group.create_task(signs.written())
            health = group.create_task(signs.health(patience_s)) if signs.health_rule.dead else None
        return pulse.result(), health.result() if health else "", written.result()

    def _is_only_busy(self, says_so: bool) -> bool:
        """An attached server has clients that we do not see; one of ours that is full of nobody's work hangs."""
        if not says_so:
            self._busy_since = None
            return False
        self._busy_since = self._busy_since or self._now()
        return self._lane.is_attached or self._now() - self._busy_since < self._lane.hang.after

    def _neighbours(self) -> str | None:
        return self._around.device.busy_with(self._lane.name, self._signs.upstream.generation)

    def _now(self) -> float:
        return self._around.clock.now()
