"""A lane made of numbers: judge and cadence are the real ones, the worker is a rate with noise, time is a float."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from supervisor.core.samples import Purpose, Sample, Status, Verdict
from supervisor.core.speed.cadence import Cadence
from supervisor.core.speed.speed_judge import SpeedJudge
from supervisor.core.terms import LaneTerms

FRESH_RUNS = 5


@dataclass
class Noise:
    """How single runs scatter: log-normally, and some come out at half the rate."""

    spread: float = 0.14
    half_rate_share: float = 1 / 8

    def factor(self, chance: random.Random) -> float:
        """What one run's rate is multiplied by."""
        return math.exp(chance.gauss(0.0, self.spread)) * (0.5 if chance.random() < self.half_rate_share else 1.0)


@dataclass
class SimulatedLane:
    """Probes by cadence, bursts when asked, and a new worker after each conviction if ``is_recycled``."""

    tok_s: Callable[[float, int, int], float]
    """True rate by the worker's age (s), generation and prompt size."""
    seed: int = 0
    noise: Noise = field(default_factory=Noise)
    terms: LaneTerms = field(default_factory=LaneTerms)
    run_s: float = 2.0
    is_recycled: bool = True

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.judge = SpeedJudge.new(self.terms)
        self.cadence = Cadence(self.terms.canary)
        self.at = 1000.0
        self.generation = 0
        self.began = self.at
        self.probes = 0
        self.runs = 0
        self.convictions: list[tuple[float, int, Verdict]] = []
        """Worker's age, probes of its life, verdict."""
        self.suspicions = 0
        self.new_worker()

    @property
    def verdict(self) -> Verdict:
        return self.judge.verdict

    def new_worker(self, runs: int | None = None) -> None:
        self.generation += 1
        self.began = self.at
        self.probes = 0
        self.judge.worker_replaced(self.generation)
        for _ in range(runs or (1 if self.judge.is_baseline_full else FRESH_RUNS)):
            self.judge.observe(self.run(self.judge.smallest, Purpose.VERIFY))
        self.cadence.heed(self.verdict)

    def run(self, size: int, purpose: Purpose) -> Sample:
        """One clean run, now."""
        age = self.at - self.began
        self.at += self.run_s
        self.runs += 1
        return Sample(
            at=self.at,
            wall=self.at,
            generation=self.generation,
            prompt_tokens=size,
            purpose=purpose,
            decode_tok_s=self.tok_s(age, self.generation, size) * self.noise.factor(self.chance),
            tokens=64,
            took_s=self.run_s,
            worker_age_s=age,
        )

    def probe(self) -> Verdict:
        """Wait for the next canary, and run it and its burst."""
        self.at += self.cadence.due_in(self.at)
        self.probes += 1
        before, purpose = self.verdict.status, Purpose.ROUTINE
        while True:
            sample = self.run(self.cadence.plan(self.at)[0], purpose)
            self.cadence.took(sample)
            verdict = self.judge.observe(sample)
            self.cadence.heed(verdict)
            purpose = Purpose.BURST
            if not verdict.wants_runs:
                break
        self.suspicions += verdict.status is Status.SUSPECT and before is not Status.SUSPECT
        if verdict.status is Status.DEGRADED:
            self.convictions.append((self.at - self.began, self.probes, verdict))
            if self.is_recycled:
                self.new_worker()
        return verdict

    def live(self, seconds: float) -> None:
        """Probe until so much time has passed."""
        until = self.at + seconds
        while self.at < until:
            self.probe()
