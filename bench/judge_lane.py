"""One lane made of numbers, driven by the classes the daemon uses: ``SpeedJudge`` (detector, baseline, noise) and
``RecycleAllowance`` (hold-off and budgets). Only time, the worker and the noise are simulated.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, replace

from bench.judge_world import FRESH_TOK_S, HOUR_S, OF_FRESH, SIZES, Weather, World, never
from supervisor.core.host.host_check import HostCheck, HostFinding, Reading
from supervisor.core.recycle.policy import RecycleAllowance
from supervisor.core.recycle.replacement import VERIFY_RUNS
from supervisor.core.recycle.worth import Worth
from supervisor.core.samples import Purpose, Sample, Status, Verdict
from supervisor.core.speed.speed_judge import SpeedJudge
from supervisor.core.terms import CanaryTerms, LaneTerms, Replace

EVERY_S = 300.0
SOON = 0.3
TOKENS = 64
READING_S = 0.3
"""Of a run, until its first token."""
RUNS_AFTER_START = 5
REFERENCE_S = 0.04
REFERENCE_NOISE = 0.02
"""Of one reading's logarithm."""
LEARNING_LIVES_S = (HOUR_S / 3,) * 30
LEARNING_RUNS = 1440
"""A lane that has been through thirty workers, and whose noise has been seen for five days."""
NOT_AGED = 0.05
TERMS = LaneTerms(canary=CanaryTerms(every_s=EVERY_S, prompt_tokens=SIZES))


@dataclass
class Recycled:
    """One recycle: when, after how many probes of the worker's life, at what age, and what came of it."""

    at: float
    probes: int
    age_s: float
    is_false: bool
    """The process was not slower than a fresh one."""
    outcome: str


class BenchLane:
    """Lives probe by probe; ``at`` 0 is the end of its learning, during which nothing ages."""

    def __init__(self, world: World, seed: int) -> None:
        self.world, self.chance = world, random.Random(seed)
        self.judge = SpeedJudge.new(TERMS)
        self.host = HostCheck()
        self.allowance = RecycleAllowance()
        self.recycled: list[Recycled] = []
        self.recycle_terms = TERMS.recycle
        self.minds_worth = False
        """Whether a recycle that does not pay is put off."""
        self.worth = Worth()
        self.runs = 0
        self.voids = 0
        self.running_s = 0.0
        self.fast_s = 0.0
        self._weather = Weather(world, self.chance, EVERY_S)
        self._turn = 0
        self._learn()

    def _learn(self) -> None:
        aged, self.world = self.world, replace(self.world, slowness=never)
        self.worker = -len(LEARNING_LIVES_S)
        self.at = -sum(LEARNING_LIVES_S) - LEARNING_RUNS * EVERY_S
        for life_s in LEARNING_LIVES_S:
            self._spawn()
            until = self.began + life_s
            while self.at < until:
                self._probe()
            self.worker += 1
        self._learn_noise()
        self.world, self.worker = aged, 0
        self.at = 0.0
        self._spawn()
        self.runs, self.voids, self.running_s, self.fast_s = 0, 0, 0.0, 0.0
        self.allowance, self.recycled = RecycleAllowance(), []

    def _learn_noise(self) -> None:
        reference = self.judge.reference(SIZES[0])
        for _ in range(LEARNING_RUNS):
            self._weather.visit(self.at)
            self.at += EVERY_S
            if reference is not None:
                self.judge.noise.add(reference.log_rate - math.log(self._rate(SIZES[0])), reference.sd)

    # ---- workers ----

    def _spawn(self) -> None:
        """A new worker and the first runs of its life; one that comes up slow is tried again, at most twice."""
        for tries_left in (2, 1, 0):
            self.began, self.probes, self.worth = self.at, 0, Worth()
            self.is_slow_spawn = self.chance.random() < self.world.slow_spawns
            self.judge.worker_replaced(self.worker)
            self.first_rates = self._first_runs()
            if not self.judge.is_slow_spawn:
                return
            if tries_left == 0:
                self.judge.accept_spawn()
            else:
                self._note(outcome="bad_spawn")
                self.at += self.world.start_s

    def _first_runs(self) -> dict[int, list[float]]:
        rates: dict[int, list[float]] = {SIZES[0]: []}
        self._weather.visit(self.at)
        while len(rates[SIZES[0]]) < RUNS_AFTER_START:
            sample = self._run(SIZES[0], Purpose.VERIFY)
            if sample.decode_tok_s is not None:
                self.judge.weigh(sample)
            rates[SIZES[0]].append(sample.decode_tok_s or self._rate(SIZES[0]))
        return rates

    def _note(self, outcome: str) -> None:
        slowness = self.world.slowness(self.at - self.began, self.worker) + self._spawn_slowness()
        self.recycled.append(Recycled(self.at, self.probes, self.at - self.began, slowness < NOT_AGED, outcome))

    def recycle(self, before: Verdict | None) -> None:
        """In place, verified, with what the outcome means for the next one. ``before``: None if not for slowness."""
        self._note("")
        self.allowance.begun(self.at)
        self.worker += 1
        self.at += self.world.start_s
        self._spawn()
        outcome = self.judge.compare(before, self.first_rates)
        self.recycled[-1].outcome = outcome
        if outcome == "cured":
            self.allowance.cured()
            return
        self.allowance.brought_nothing(self.at)
        if self.allowance.is_time_to_anchor:
            self.judge.anchor_anew(self.first_rates[SIZES[0]])

    # ---- probes ----

    def live(self, until: float) -> None:
        """Probe until then."""
        while self.at < until:
            self._probe()

    def until_recycled(self, probes: int) -> Recycled | None:
        """Probe until the worker is replaced; None if that does not happen within so many probes."""
        for _ in range(probes):
            if self.recycled:
                break
            self._probe()
        return self.recycled[0] if self.recycled else None

    def _probe(self) -> None:
        begins = self.at
        self.probes += 1
        self.fast_s += 0.0 if self.is_slow_spawn else EVERY_S
        self._visit()
        if self.judge.wants_soon:
            self.at = max(self.at, begins + SOON * EVERY_S)
            self._visit()
        self.at = max(self.at, begins + EVERY_S)

    def _visit(self) -> None:
        self._weather.visit(self.at)
        size, purpose = self._size(), Purpose.ROUTINE
        while True:
            sample = self._run(size, purpose)
            if not self.judge.weigh(sample):
                return
            purpose, size = Purpose.BURST, self.judge.wants_size(size) or size
            if not self.judge.wants_runs:
                break
        if self.minds_worth:
            self.worth.measured(self.at - self.began, self.judge.say(sample).ratio or 1.0)
        if self.judge.status is Status.DEGRADED:
            self._act(sample)

    def _size(self) -> int:
        self._turn += 1
        wanted = self.judge.wants_size(0)
        if wanted:
            return wanted
        return SIZES[0] if self._turn % 3 != 1 else SIZES[1 + self._turn // 3 % 2]

    def _act(self, sample: Sample) -> None:
        objection = self.allowance.objection(
            self.at, self.recycle_terms, replace=Replace.IN_PLACE, uptime_s=self.at - self.began, is_window_open=True
        )
        is_worth_it = not self.minds_worth or self.worth.is_worth_it(self.world.start_s)
        if objection is None and is_worth_it:
            self.recycle(self.judge.say(sample))

    def _rate(self, size: int) -> float:
        slowness = self.world.slowness(self.at - self.began, self.worker) + self._spawn_slowness()
        slowness += self.world.host(self.at)
        return FRESH_TOK_S * OF_FRESH[size] * math.exp(self._weather.noise() - slowness)

    def _spawn_slowness(self) -> float:
        return -math.log(self.world.slow_spawn) if self.is_slow_spawn else 0.0

    def _run(self, size: int, purpose: Purpose) -> Sample:
        rate = self._rate(size)
        took_s = min(READING_S + TOKENS / rate, TERMS.canary.max_time_s)
        self.at += took_s
        self.running_s += took_s
        self.runs += 1
        found = HostFinding()
        if self.world.reference_sensitivity:
            found = self._look_at_host(size, rate)
        self.voids += found.is_slow
        return Sample(
            self.at,
            self.at,
            self.worker,
            size,
            purpose,
            None if found.is_slow else rate,
            tokens=TOKENS,
            took_s=took_s,
            worker_age_s=self.at - self.began,
            host_slowness=found.slowness,
        )

    def _look_at_host(self, size: int, rate: float) -> HostFinding:
        seen = self.world.reference_sensitivity * self.world.host(self.at)
        before, after = (
            Reading(REFERENCE_S * math.exp(seen + self.chance.gauss(0, REFERENCE_NOISE))) for _ in range(2)
        )
        found = self.host.find(before, after)
        is_well = self.judge.status is not Status.SUSPECT
        self.host.learn(self.at, before, after, size=size, log_rate=math.log(rate), found=found, is_well=is_well)
        return found


assert VERIFY_RUNS == RUNS_AFTER_START
