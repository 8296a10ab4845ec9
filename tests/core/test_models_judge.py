"""A worker of several models: each is judged by its own runs, and the one that is worst off is the verdict."""

from __future__ import annotations

import json
from dataclasses import replace

from supervisor.core.samples import Purpose, Sample, Status, Void
from supervisor.core.speed.cadence import Cadence
from supervisor.core.speed.lane_judge import LaneJudge
from supervisor.core.speed.models_judge import ModelsJudge
from supervisor.core.terms import CanaryTerms, LaneTerms

ONE = LaneTerms()
TWO = LaneTerms(canary=CanaryTerms(models=("coder", "tiny")))
RATES = {"": 60.0, "coder": 25.0, "tiny": 200.0}


class Lane:
    """Three models on one worker, each at a rate of its own, run by the real cadence."""

    def __init__(self) -> None:
        self.judge, self.cadence = ModelsJudge(TWO), Cadence(TWO.canary)
        self.at = 0.0
        self.factor = dict.fromkeys(RATES, 1.0)
        self.asked: list[str] = []
        for generation in range(1, 5):
            self.judge.worker_replaced(generation)
            for model in RATES:
                for _ in range(5):
                    self.take(model, Purpose.VERIFY, age_s=10.0)
        self.asked.clear()

    def take(self, model: str, purpose: Purpose, *, size: int = 256, age_s: float = 9e9) -> None:
        rate = RATES[model] * self.factor[model]
        sample = Sample(self.at, self.at, 1, size, purpose, rate, took_s=1.0, worker_age_s=age_s, model=model)
        self.asked.append(model)
        self.cadence.took(sample)
        self.cadence.heed(self.judge.observe(sample))

    def probe(self) -> None:
        """One run by the timetable, and the bursts that follow from it."""
        self.at += self.cadence.due_in(self.at)
        self._turn(Purpose.ROUTINE)
        while self.judge.verdict.wants_runs:
            self.at += 1.0
            self._turn(Purpose.BURST)

    def _turn(self, purpose: Purpose) -> None:
        model = self.cadence.model_due
        self.take(model, purpose, size=256 if model else self.cadence.plan(self.at)[0])


def test_the_models_are_measured_in_turn_and_the_larger_prompts_are_the_own_models() -> None:
    lane = Lane()
    for _ in range(30):
        lane.probe()
    assert [lane.asked.count(model) for model in RATES] == [10, 10, 10]
    assert lane.judge.verdict.status is Status.HEALTHY


def test_models_of_different_speed_are_each_held_against_themselves() -> None:
    lane = Lane()
    found = {name: baseline["decode_tok_s"] for name, (_, baseline) in lane.judge.by_model().items()}
    assert (round(lane.judge.fresh_tok_s or 0), round(found["coder"]), round(found["tiny"])) == (60, 25, 200)


def test_one_slow_model_makes_the_worker_degraded_and_is_named_within_three_rounds() -> None:
    lane = Lane()
    lane.factor["coder"] = 0.3
    for _ in range(9):
        lane.probe()
        if lane.judge.verdict.status is Status.DEGRADED:
            break
    verdict = lane.judge.verdict
    assert (verdict.status, verdict.model) == (Status.DEGRADED, "coder")
    assert verdict.reason.startswith("coder: 7.5 tok/s")
    assert lane.judge.compare(verdict, {256: [25.0] * 5}) == "cured"
    assert lane.judge.compare(verdict, {256: [7.5] * 5}) == "futile"


def test_a_slow_model_that_nobody_recycles_leaves_the_others_their_turns() -> None:
    lane = Lane()
    lane.factor["coder"] = 0.3
    for _ in range(60):
        lane.probe()
    lane.asked.clear()
    for _ in range(12):
        lane.probe()
    assert lane.judge.verdict.model == "coder"
    assert min(lane.asked.count(model) for model in RATES) >= 4


def test_the_bursts_that_a_model_in_doubt_asks_for_are_its_own() -> None:
    lane = Lane()
    lane.factor["tiny"] = 0.3
    while "tiny" not in lane.asked:
        lane.probe()
    first = lane.asked.index("tiny")
    assert len(lane.asked) > first + 1
    assert set(lane.asked[first:]) == {"tiny"}


def test_a_further_model_that_cannot_be_had_has_had_its_turn() -> None:
    cadence = Cadence(TWO.canary)
    cadence.took(Sample(0.0, 0.0, 1, 256, Purpose.ROUTINE, 60.0, took_s=1.0))
    assert cadence.model_due == "coder"
    cadence.took(Sample(300.0, 0.0, 1, 256, Purpose.ROUTINE, void=Void.FAILED, model="coder"))
    assert cadence.model_due == "tiny"
    assert cadence.retry_in(300.0) == TWO.canary.every_s


def test_a_slow_host_leaves_no_model_accused() -> None:
    lane = Lane()
    lane.judge.observe(Sample(lane.at, 0.0, 1, 256, Purpose.ROUTINE, void=Void.HOST_SLOW, model="coder"))
    assert lane.judge.verdict.status is Status.UNKNOWN
    assert all(verdict.status is Status.UNKNOWN for verdict, _ in lane.judge.by_model().values())


def test_what_was_learned_of_each_model_outlives_the_daemon() -> None:
    lane, again = Lane(), ModelsJudge(TWO)
    again.restore(json.loads(json.dumps(lane.judge.to_json())))
    assert again.by_model()["coder"][1] == lane.judge.by_model()["coder"][1]
    assert again.to_json() == lane.judge.to_json()


def test_a_reload_keeps_what_is_known_of_the_models_that_stay() -> None:
    lane = Lane()
    known = lane.judge.by_model()["tiny"][1]["runs"]
    lane.judge.terms = replace(TWO, canary=replace(TWO.canary, models=("tiny", "new")))
    runs = {name: baseline["runs"] for name, (_, baseline) in lane.judge.by_model().items()}
    assert runs == {"tiny": known, "new": 0}


def test_a_lane_of_one_model_is_judged_to_the_letter_as_before() -> None:
    old, new = LaneJudge(ONE), ModelsJudge(ONE)
    for at in range(200):
        rate = 60.0 if at < 120 else 20.0
        sample = Sample(300.0 * at, 0.0, 1, 256, Purpose.ROUTINE, rate, worker_age_s=300.0 * at)
        assert old.observe(sample) == new.observe(sample) == new.verdict
    assert old.to_json() == new.to_json()
