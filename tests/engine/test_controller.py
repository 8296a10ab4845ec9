"""The controller on replayed costs: simulated machines, seeded content, no clock."""

from __future__ import annotations

import random
import statistics
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from engine.acceptance import Acceptance
from engine.controller import Controller
from engine.costs import Costs
from engine.drafters import Draft
from engine.ledger import SHARE, WON_CYCLES

LENGTHS = (1, 3, 7, 15)


@dataclass(frozen=True)
class Machine:
    """Seconds of a plain step, and of cycles in plain steps."""

    plain: float
    cycles: dict[int, float]

    def seconds(self, k: int) -> float:
        return self.plain * (self.cycles[k] if k else 1.0)


OPENBLAS = Machine(0.052, {1: 2.04, 3: 2.29, 7: 2.52, 15: 3.16})
REFERENCE_BLAS = Machine(0.150, {1: 1.9, 3: 3.7, 7: 9.0, 15: 22.7})
MOE_35B = Machine(0.0176, {1: 1.48 + 0.2, 3: 2.44 + 0.2, 7: 4.36 + 0.2, 15: 8.7})
FLAT = Machine(0.0108, {1: 1.75, 3: 1.75, 7: 1.76, 15: 1.8})


@dataclass
class Run:
    """Decodes `tokens` simulated tokens, whose drafts are right with `chance` each, and adds up the time."""

    controller: Controller
    machine: Machine
    dice: random.Random
    seconds: float = 0.0
    tokens: int = 0
    worst_loss: float = 0.0
    chosen: list[int] = field(default_factory=list)

    def sequence(self, chance: float, tokens: int, *, available: float = 1.0) -> Run:
        self.controller.sequence_began()
        right = self._rightness(chance)
        done = 0
        while done < tokens:
            drafts = 15 if self.dice.random() < available else 0
            k = self.controller.choose(100, Draft((1,) * drafts, "sim" if drafts else ""))
            seconds = self.machine.seconds(k) * self.dice.gauss(1.0, 0.02)
            if k:
                accepted = next((i for i in range(k) if not next(right)), k)
                given = (1,) * accepted + ((1,) if accepted == k else (0,))
                self.controller.cycle_ended(100, Draft((1,) * k, "sim"), accepted, given, seconds)
            else:
                given = (1,) if next(right) else (0,)
                self.controller.step_ended(100, given, seconds)
            done += len(given)
            self.seconds += seconds
            self.tokens += len(given)
            self.chosen.append(k)
            self.worst_loss = max(self.worst_loss, self.seconds - self.tokens * self.machine.plain)
        self.controller.sequence_ended()
        return self

    def _rightness(self, chance: float) -> Iterator[bool]:
        while True:
            yield self.dice.random() < chance

    @property
    def speed(self) -> float:
        """Times plain decoding."""
        return self.tokens * self.machine.plain / self.seconds


def calibrated(machine: Machine, seed: int = 0) -> Run:
    costs = Costs()
    for _ in range(3):
        costs.observe(0, 64, machine.plain)
        for k in LENGTHS:
            if machine.cycles[k] < k + 1:
                costs.observe(k, 64, machine.seconds(k))
    return Run(Controller(costs, Acceptance(15), widest=15), machine, random.Random(seed))


def best_fixed(machine: Machine, chance: float) -> float:
    """Speed of the best single draft length in hindsight."""
    gains = [(1 + sum(chance**j for j in range(1, k + 1))) / machine.cycles[k] for k in LENGTHS]
    return max(1.0, *gains)


@pytest.mark.parametrize(
    "machine", [OPENBLAS, REFERENCE_BLAS, MOE_35B, FLAT], ids=["openblas", "reference", "moe", "flat"]
)
@pytest.mark.parametrize("chance", [0.0, 0.2, 0.5])
@pytest.mark.parametrize("seed", range(4))
def test_where_drafts_lose_it_is_as_fast_as_plain_decoding(machine, chance, seed):
    if best_fixed(machine, chance) > 1:
        pytest.skip("drafts win here")
    run = calibrated(machine, seed)
    for _ in range(10):
        run.sequence(chance, 200)
    assert run.speed > 0.985


@pytest.mark.parametrize(("machine", "chance"), [(OPENBLAS, 0.95), (OPENBLAS, 1.0), (FLAT, 0.7), (FLAT, 0.95)])
def test_where_drafts_win_it_comes_near_the_best_fixed_length(machine, chance):
    shares = []
    for seed in range(6):
        run = calibrated(machine, seed)
        for _ in range(10):
            run.sequence(chance, 200)
        shares.append(run.speed / best_fixed(machine, chance))
    assert statistics.mean(shares) > 0.88
    assert min(shares) > 0.78


def test_a_text_that_is_being_copied_is_drafted_after_a_few_tokens():
    run = calibrated(OPENBLAS)
    run.sequence(1.0, 40)
    assert run.chosen.index(next(k for k in run.chosen if k)) <= 8


@pytest.mark.parametrize("seed", range(8))
def test_time_lost_stays_within_a_hundredth_and_a_few_cycles_under_shifting_content(seed):
    run = calibrated(OPENBLAS, seed)
    for _ in range(20):
        run.sequence(run.dice.choice([0.0, 0.3, 0.6, 0.9, 1.0]), run.dice.randrange(20, 200), available=0.7)
    dearest = OPENBLAS.seconds(15)
    assert run.worst_loss < 2 * SHARE * run.seconds + (WON_CYCLES + 1) * dearest
    assert run.speed > 0.99


def test_a_drafter_that_is_always_wrong_is_never_verified():
    run = calibrated(FLAT).sequence(0.0, 3000)
    assert set(run.chosen) == {0}


def test_without_costs_nothing_is_drafted():
    controller = Controller(Costs(), Acceptance(15), widest=15)
    assert controller.choose(10, Draft((1,) * 15, "sim")) == 0
    assert "calibrated" in controller.snapshot()["why"]


def test_only_measured_lengths_are_chosen():
    run = calibrated(OPENBLAS).sequence(1.0, 1500)
    assert {0, 15} <= set(run.chosen) <= {0, *LENGTHS}


def test_plain_steps_are_measured_again_while_drafts_win():
    run = calibrated(FLAT).sequence(0.6, 6000)
    longest, current = 0, 0
    for k in run.chosen:
        current = current + 1 if k else 0
        longest = max(longest, current)
    assert 0 < longest <= 4 * 64 + 1


def test_a_machine_that_slows_down_under_speculation_is_left():
    run = calibrated(OPENBLAS).sequence(0.85, 500)
    assert run.chosen[-1] > 0
    run.machine = Machine(0.052, {k: 3 * cost for k, cost in OPENBLAS.cycles.items()})
    run.chosen.clear()
    run.sequence(0.85, 2000)
    assert sum(1 for k in run.chosen if k) < 40
