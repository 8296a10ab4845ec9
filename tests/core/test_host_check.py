"""Whether it is the machine: what its reference shows, what a lane feels of it, and when lanes fell together."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from supervisor.core.host.common_fall import EXCUSES_FOR_S, CommonFall
from supervisor.core.host.host_check import HostCheck, HostFinding, Reading
from supervisor.core.host.reading_budget import ReadingBudget
from supervisor.core.host.usual_time import ANCHOR_AFTER_S

USUAL_S = 0.04
EVERY_S = 300.0


class Machine:
    """A lane's runs beside readings. ``feels``: how much of the reference's slowness (logarithm) the worker feels."""

    def __init__(self, *, noise: float = 0.01, feels: float = 1.0, seed: int = 1) -> None:
        self.check, self.chance = HostCheck(), random.Random(seed)
        self.noise, self.feels, self.at = noise, feels, 0.0

    def run(
        self, slower: float = 1.0, *, aged: float = 1.0, is_well: bool = True, own_cores: float = 0.0
    ) -> HostFinding:
        """One run while the reference takes ``slower`` times as long and the worker is ``aged`` times as slow."""
        self.at += EVERY_S
        before, after = (
            Reading(USUAL_S * slower * math.exp(self.chance.gauss(0, self.noise)), own_cores) for _ in "ba"
        )
        log_rate = math.log(60.0 / aged) - self.feels * math.log(slower) + self.chance.gauss(0, 0.14)
        found = self.check.find(before, after)
        self.check.learn(
            self.at, before, after, size=256, log_rate=log_rate, found=found, is_well=is_well and not found.is_slow
        )
        return found

    def runs(self, count: int, slower: float = 1.0, *, aged: float = 1.0, is_well: bool = True) -> list[HostFinding]:
        return [self.run(slower, aged=aged, is_well=is_well) for _ in range(count)]


def test_a_machine_whose_reference_takes_a_third_longer_is_slow_and_says_by_how_much() -> None:
    machine = Machine()
    machine.runs(30)
    found = machine.run(1.33)
    assert found.is_slow
    assert "1.3" in found.words


def test_a_machine_a_little_slow_voids_nothing_and_is_taken_off() -> None:
    machine = Machine()
    machine.runs(30)
    found = machine.run(1.08)
    assert not found.is_slow
    assert 0.02 < found.slowness < 0.10


def test_a_machine_that_was_slow_is_believed_at_once_when_it_is_fast_again() -> None:
    machine = Machine()
    machine.runs(30)
    assert all(found.is_slow for found in machine.runs(50, 1.5))
    assert not machine.run().is_slow


def test_before_it_is_known_what_is_usual_nothing_is_excused() -> None:
    machine = Machine()
    machine.runs(7)
    assert machine.run(3.0) == HostFinding()


def test_a_noisy_machine_is_a_weak_excuse() -> None:
    machine = Machine(noise=0.4)
    machine.runs(60)
    assert sum(found.is_slow for found in machine.runs(100)) < 25
    assert machine.run(8.0).is_slow


def test_a_machine_slow_for_a_day_is_how_fast_it_is_now() -> None:
    machine = Machine()
    machine.runs(30)
    assert machine.run(1.5).is_slow
    machine.runs(int(ANCHOR_AFTER_S / EVERY_S) + 20, 1.5)
    assert not machine.run(1.5).is_slow


def test_a_worker_that_does_not_feel_what_slows_the_processor_is_judged_on() -> None:
    """It computes on the GPU, and a compiler beside it has the processor."""
    machine = Machine(feels=0.0)
    machine.runs(60)
    found = machine.runs(60, 1.5)
    assert found[0].is_slow
    assert not found[-1].is_slow
    assert found[-1].slowness < 0.1


def test_a_worker_that_feels_twice_as_much_is_excused_for_as_much() -> None:
    machine = Machine(feels=2.0)
    machine.runs(60)
    machine.runs(200, 1.2)
    assert machine.run(1.12).slowness == pytest.approx(2 * math.log(1.12), rel=0.4)


def test_ageing_alone_teaches_no_excuse() -> None:
    machine = Machine()
    machine.runs(60)
    assert not any(found.is_slow for found in machine.runs(300, aged=3.0, is_well=False))
    assert machine.run(aged=3.0, is_well=False).slowness < 0.05


def test_a_worker_that_eats_the_processor_while_it_idles_does_not_excuse_itself() -> None:
    machine = Machine()
    machine.runs(30)
    assert machine.run(3.0, own_cores=1.0) == HostFinding()


@settings(max_examples=15, deadline=None)
@given(slower=st.floats(0.2, 5.0), feels=st.floats(-1.0, 3.0), seed=st.integers(0, 99))
def test_a_host_never_adds_to_suspicion_and_what_was_learned_stays_bounded(
    slower: float, feels: float, seed: int
) -> None:
    machine = Machine(feels=feels, seed=seed)
    machine.runs(20)
    for found in machine.runs(40, slower):
        assert 0.0 <= found.slowness <= 2.0 * max(math.log(slower) + 0.1, 0.1)


@settings(max_examples=15, deadline=None)
@given(st.integers(16, 400))
def test_what_was_learned_outlives_the_daemon(runs: int) -> None:
    machine = Machine()
    machine.runs(runs)
    other = HostCheck()
    other.restore(machine.check.to_json())
    for seconds in (0.03, 0.041, 0.043, 0.06):
        found = [check.find(Reading(seconds), Reading(seconds)) for check in (machine.check, other)]
        assert found[0].is_slow == found[1].is_slow
        assert found[0].slowness == pytest.approx(found[1].slowness, abs=0.02)


def test_what_cannot_be_read_is_left_out() -> None:
    check = HostCheck()
    for document in (None, [], {"usual": "x", "sensitivity": [1]}, {"usual": [1, "x", math.nan, None]}):
        check.restore(document)
        assert check.find(Reading(1.0), Reading()) == HostFinding()


class Fleet:
    """Lanes that are probed each five minutes, one after the other."""

    def __init__(self, *names: str) -> None:
        self.names, self.falls, self.at = names, CommonFall(), 0.0

    def probe(self, **rates: float) -> float:
        """A round of probes, three runs each; what a lane asked afterwards is told."""
        self.at += EVERY_S
        for name in self.names:
            for _ in range(3):
                self.falls.note(name, self.at, 256, math.log(rates.get(name, 100.0)), 2 * EVERY_S)
        return self.falls.depth(self.at)


def test_lanes_that_fall_together_excuse_each_other_until_one_is_back() -> None:
    fleet = Fleet("a", "b")
    for _ in range(5):
        assert fleet.probe() == 0.0
    assert fleet.probe(a=50.0, b=60.0) == pytest.approx(math.log(100 / 60))
    assert fleet.probe(a=50.0, b=60.0) > 0.4
    assert fleet.probe(a=50.0) == 0.0
    assert fleet.probe() == 0.0


def test_one_lane_that_falls_alone_is_not_excused() -> None:
    fleet = Fleet("a", "b", "c")
    for _ in range(5):
        fleet.probe()
    for _ in range(50):
        assert fleet.probe(a=30.0) == 0.0


def test_a_lane_without_siblings_is_not_excused_by_them() -> None:
    fleet = Fleet("a")
    for _ in range(5):
        fleet.probe()
    assert fleet.probe(a=30.0) == 0.0


def test_lanes_that_age_slowly_side_by_side_do_not_excuse_each_other() -> None:
    fleet = Fleet("a", "b")
    probes = int(10 * 3600 / EVERY_S)
    for number in range(probes):
        rate = 100.0 * (1 - 0.69 * number / probes)
        assert fleet.probe(a=rate, b=rate) == 0.0


def test_lanes_that_aged_in_the_same_minute_are_excused_for_half_an_hour_only() -> None:
    fleet = Fleet("a", "b")
    for _ in range(5):
        fleet.probe()
    excused = [fleet.probe(a=30.0, b=30.0) > 0 for _ in range(100)]
    assert excused[0]
    assert sum(excused) * EVERY_S <= EXCUSES_FOR_S + 2 * EVERY_S
    assert not any(excused[10:])


def test_a_lane_that_has_not_been_measured_lately_has_no_say() -> None:
    fleet = Fleet("a", "b")
    for _ in range(5):
        fleet.probe()
    fleet.names = ("a",)
    for _ in range(5):
        assert fleet.probe(a=30.0) == 0.0


def test_readings_take_a_tenth_of_what_canaries_may_in_the_long_run() -> None:
    budget, spent_s = ReadingBudget(), 0.0
    for second in range(0, 24 * 3600, 5):
        if budget.can_afford(float(second), canary_share=0.01):
            budget.spent(0.05)
            spent_s += 0.05
    assert spent_s <= 0.001 * (24 + 1) * 3600 + 0.05
