"""Sends a lane's canaries, one at a time, and makes of each a sample or a void with its reason.

The lane says when; the desk sees to it that nothing else uses the device meanwhile, ends a run the moment a client
arrives, and does not believe a run during which this daemon itself was not well.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from statistics import median

from supervisor.core.host.host_check import Reading
from supervisor.core.lane.commands import RunCanary
from supervisor.core.samples import Purpose, Sample, Void
from supervisor.settings import LaneSettings
from supervisor.shell.front.gate import Gate
from supervisor.shell.front.upstream import Upstream
from supervisor.shell.lane.doubts import Doubt, Moment, doubt, moment
from supervisor.shell.lane.host_desk import HostDesk
from supervisor.shell.lane.probe_seat import ProbeSeat
from supervisor.shell.lane.self_report import SelfReport
from supervisor.shell.lane.surroundings import Surroundings
from supervisor.shell.pace import every
from supervisor.shell.probing.probe import ProbeResult, TokenClock, run_canary
from supervisor.shell.tasks import Tasks

TIMEOUT_RUNS = 3.0
SHORTEST_TIMEOUT_S, LONGEST_TIMEOUT_S = 10.0, 30.0
REMEMBERED_RUNS = 15
DEVICE_LOOK_S = 0.05
_NOTHING_CAME = frozenset({Void.FAILED, Void.TIMED_OUT, Void.NO_TOKENS})


class CanaryDesk:
    """One lane's canaries. ``done`` takes each sample."""

    def __init__(
        self, settings: LaneSettings, gate: Gate, around: Surroundings, tasks: Tasks, done: Callable[[Sample], None]
    ) -> None:
        self.settings = settings
        self.seat = ProbeSeat(around.clock.now)
        """Shared with the pulses: one probe at a time."""
        self.host = HostDesk(settings, around)
        self.reports: dict[int, SelfReport] = {}
        """Of each worker that lives: what it says of itself is asked for around a run."""
        self._answered = (0, 0.0)
        self._gate = gate
        self._around = around
        self._tasks = tasks
        self._done = done
        self._running: asyncio.Task[None] | None = None
        self._is_well = True
        self._worker_cpu_s: Callable[[], float] = lambda: 0.0
        self._void: Void | None = None
        self._measured_already: Sample | None = None
        """The run that is out has brought its rate; what follows only adds to it."""
        self._why = ""
        self._took: deque[float] = deque(maxlen=REMEMBERED_RUNS)
        self._token_clocks: tuple[int, dict[tuple[str, bool], TokenClock]] = (0, {})
        """A worker's generation, and what its streams are like, by model, with speculation and without."""
        self._prefill: deque[float] = deque(maxlen=REMEMBERED_RUNS)
        self._rates: deque[float] = deque(maxlen=REMEMBERED_RUNS)

    def take(self, settings: LaneSettings) -> None:
        """A reload changed the lane's settings."""
        self.settings = self.host.settings = settings

    def run(
        self,
        command: RunCanary,
        upstream: Upstream,
        *,
        worker_age_s: float,
        worker_requests: int,
        worker_cpu_s: Callable[[], float],
        is_well: bool,
    ) -> None:
        """Send one; its sample comes by ``done``, always. ``is_well``: nobody suspects the worker."""
        now = self._around.clock.now()
        blank = Sample(
            at=now,
            wall=self._around.clock.wall(),
            generation=command.generation,
            prompt_tokens=command.prompt_tokens,
            purpose=command.purpose,
            has_nonce=command.has_nonce,
            model=command.model,
            worker_age_s=worker_age_s,
            worker_requests=worker_requests,
        )
        self.cancel()  # the lane has forgotten a run that is still out
        self._void = self._measured_already = None
        self._is_well, self._worker_cpu_s = is_well, worker_cpu_s
        self._running = self._tasks.start(self._run(command, upstream, blank), "canary")

    def cancel(self, reason: Void = Void.CANCELLED, detail: str = "") -> None:
        """End the run that is out, if one is: its sample is void for this reason."""
        if self._running and not self._running.done() and self._void is None:
            self._void, self._why = reason, detail
            self._running.cancel()

    @property
    def timeout_s(self) -> float:
        """How long a run may take: thrice what runs of this lane take, within sane bounds."""
        if self.settings.canary.timeout is not None:
            return self.settings.canary.timeout
        usual = median(self._took) if self._took else LONGEST_TIMEOUT_S
        return min(max(TIMEOUT_RUNS * usual, SHORTEST_TIMEOUT_S), LONGEST_TIMEOUT_S)

    @property
    def prefill_tok_s(self) -> float | None:
        """The lane's measured prefill rate, if a run has shown it."""
        return median(self._prefill) if self._prefill else None

    def tokens_per_chunk(self, generation: int) -> float | None:
        """What a chunk of this worker's streams carries, if a canary has shown it."""
        of_generation, clocks = self._token_clocks
        known = clocks.get(("", False)) if of_generation == generation else None
        return known.tokens_per_chunk if known else None

    def answered_at(self, generation: int) -> float:
        """When a run last brought this worker's tokens; 0 if none has."""
        return self._answered[1] if self._answered[0] == generation else 0.0

    @property
    def decode_tok_s(self) -> float | None:
        """What the last runs of the lane showed."""
        return median(self._rates) if self._rates else None

    async def _run(self, command: RunCanary, upstream: Upstream, blank: Sample) -> None:
        try:
            await self._others_quiet(command)
            async with self.seat.taken(command.generation):
                blank = replace(blank, at=self._around.clock.now())
                sample = self._obstacle(command, blank) or await self._measured(command, upstream, blank)
        except asyncio.CancelledError:
            if self._void is None:
                raise
            took_s = self._around.clock.now() - blank.at
            sample = replace(blank, void=self._void, detail=self._why, took_s=took_s)
            if self._measured_already and self._void is not Void.CANCELLED:
                sample = replace(self._measured_already, took_s=took_s)
        self._running = None
        self._done(replace(sample, at=self._around.clock.now()))

    async def _others_quiet(self, command: RunCanary) -> None:
        """Other lanes let no new request pass meanwhile; those in flight get as long as the command says."""
        now, device = self._around.clock.now, self._around.device
        ends = now() + command.patience_s
        async for _ in every(DEVICE_LOOK_S):
            if now() >= ends or not device.busy_with(self.settings.name, command.generation):
                return

    def _obstacle(self, command: RunCanary, blank: Sample) -> Sample | None:
        idle_s = self._gate.idle_for(blank.at)
        if self._gate.inflight() > 0:
            return replace(blank, void=Void.LANE_BUSY, detail=f"{self._gate.inflight()} requests in flight")
        if idle_s < command.idle_for_s:
            return replace(blank, void=Void.LANE_BUSY, detail=f"idle for less than {command.idle_for_s:g} s")
        busy = self._around.device.busy_with(self.settings.name, command.generation)
        return replace(blank, void=Void.DEVICE_BUSY, detail=busy) if busy else None

    async def _measured(self, command: RunCanary, upstream: Upstream, blank: Sample) -> Sample:
        began = moment(self._around.host, blank.at)
        report = self.reports.get(command.generation) or SelfReport(upstream, None, self._around.clock.now)
        async with report.around_canary(command.prompt_tokens, command.model) as told:
            with self._around.device.canary(self.settings.name, self.cancel):
                before = await self.host.read(self._worker_cpu_s)
                result = await self._sent(command, upstream)
                after = Reading() if result.void else await self.host.read(self._worker_cpu_s)
            told.is_void = result.void is not None
        blank = replace(blank, tokens_per_step=told.tokens_per_step)
        self._learn(blank, result)
        sample = self.host.judged(self._believed(began, blank, result), before, after, is_well=self._is_well)
        return await self._with_plain(command, upstream, sample) if self._wants_plain(command, sample) else sample

    def _wants_plain(self, command: RunCanary, sample: Sample) -> bool:
        """Our engine leaves speculation off when asked: then runs alternate, at the smallest size."""
        speculates = self.settings.is_ours and not command.model and self.settings.speculation.method != "off"
        is_smallest = command.prompt_tokens == min(self.settings.canary.prompt_tokens)
        return speculates and is_smallest and sample.is_clean and command.purpose is Purpose.ROUTINE

    async def _with_plain(self, command: RunCanary, upstream: Upstream, sample: Sample) -> Sample:
        self._measured_already = sample
        began = moment(self._around.host, self._around.clock.now())
        with self._around.device.canary(self.settings.name, self.cancel):
            plain = await self._sent(replace(command, has_warmup=False, has_nonce=False), upstream, is_plain=True)
        is_believed = plain.void is None and doubt(self._around.host, began) is None
        rate = plain.decode_tok_s if is_believed else None
        return replace(sample, plain_tok_s=rate, took_s=sample.took_s + plain.took_s)

    async def _sent(self, command: RunCanary, upstream: Upstream, *, is_plain: bool = False) -> ProbeResult:
        canary = self.settings.canary
        return await run_canary(
            upstream.session,
            upstream.url,
            model=upstream.served_models[command.model or self.settings.name],
            kind=self.settings.kind,
            headers=upstream.headers,
            prompt_tokens=command.prompt_tokens,
            max_tokens=canary.max_tokens,
            max_time_s=canary.max_time,
            timeout_s=self.timeout_s,
            has_warmup=command.has_warmup,
            has_nonce=command.has_nonce,
            is_plain=is_plain,
            token_clock=self._clock_of(command, is_plain=is_plain),
            progressed=self.seat.moved,
        )

    def _clock_of(self, command: RunCanary, *, is_plain: bool) -> TokenClock:
        """What runs of this worker have taught about its streams; only the newest worker's is kept."""
        if self._token_clocks[0] != command.generation:
            self._token_clocks = (command.generation, {})
        return self._token_clocks[1].setdefault((command.model, is_plain), TokenClock())

    def _learn(self, blank: Sample, result: ProbeResult) -> None:
        if result.void is None and result.decode_tok_s is not None:
            self._answered = (blank.generation, self._around.clock.now())
            self._took.append(result.took_s)
        if blank.model:
            return  # the rates are those of the lane's own model
        if result.void is None and result.decode_tok_s is not None:
            self._rates.append(result.decode_tok_s)
        if result.prefill_tok_s or result.fastest_prefill_tok_s:
            self._prefill.append(result.prefill_tok_s or result.fastest_prefill_tok_s or 0.0)

    def _believed(self, began: Moment, blank: Sample, result: ProbeResult) -> Sample:
        sample = replace(
            blank,
            decode_tok_s=result.decode_tok_s,
            void=result.void,
            detail=result.detail,
            tokens=result.tokens,
            measured_prompt_tokens=result.prompt_tokens,
            cached_tokens=result.cached_tokens,
            ttft_s=result.ttft_s,
            took_s=result.took_s,
            prefill_tok_s=result.prefill_tok_s,
        )
        if result.void is not None and result.void not in _NOTHING_CAME:
            return sample
        found = doubt(self._around.host, began, waited_s=0.0 if result.void is None else result.took_s)
        found = found or self._strained()
        return replace(sample, decode_tok_s=None, void=found.void, detail=found.detail) if found else sample

    def _strained(self) -> Doubt | None:
        """A machine that says of itself that it is slow makes every worker slow."""
        words = self._around.host.strain.words() if self.host.is_on else None
        return Doubt(Void.HOST_SLOW, words) if words else None
