"""Watches a ready worker for a hang: looks at its progress, and asks for one token when it is idle."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from supervisor.core.hang import Finding, Fine, HangTerms, HangWatch, Hung, SendPulse
from supervisor.settings import LaneSettings
from supervisor.shell.clock import Clock
from supervisor.shell.host import Host
from supervisor.shell.vital_signs import VitalSigns

WORST_LOOP_LAG_S = 1.0
"""While this daemon itself is so late, what it did not see means nothing."""
CLIENT_LOOK_S = 0.05


class HangGuard:
    """Of one worker. ``hung`` is called once, with the evidence."""

    def __init__(
        self,
        lane: LaneSettings,
        signs: VitalSigns,
        clock: Clock,
        host: Host,
        *,
        pulse_timeout_s: Callable[[], float],
        hung: Callable[[str], None],
    ) -> None:
        self._signs = signs
        self._clock = clock
        self._host = host
        self._pulse_timeout_s = pulse_timeout_s
        self._hung = hung
        self._is_over = False
        self._watch = HangWatch(HangTerms(lane.hang.after, lane.hang.pulse), clock.now())

    async def look(self) -> None:
        """Take one look, and do what it asks for."""
        if self._is_over:
            return
        finding: Finding = self._watch.look(await self._signs.progress(self._clock.now()))
        while isinstance(finding, SendPulse):
            finding = await self._pulse()
        if isinstance(finding, Hung):
            self._is_over = True
            self._hung(finding.evidence)

    async def _pulse(self) -> Finding:
        began = self._clock.now()
        missed = await self._unless_a_client_comes()
        now = self._clock.now()
        if missed is None or self._host.loop_lag.worst_since(began) > WORST_LOOP_LAG_S:
            self._watch.pulse_void(now)
            return Fine()
        if missed:
            return self._watch.pulse_missed(now, missed)
        self._watch.pulse_answered(now)
        return Fine()

    async def _unless_a_client_comes(self) -> str | None:
        """The pulse's trouble, or nothing; None where it was taken back for a client's sake."""
        async with asyncio.TaskGroup() as group:
            pulse = group.create_task(self._signs.pulse(self._pulse_timeout_s()))
            while not pulse.done():
                await asyncio.wait({pulse}, timeout=CLIENT_LOOK_S)
                if not pulse.done() and self._signs.gate.inflight():
                    pulse.cancel()
                    return None
        return pulse.result()
