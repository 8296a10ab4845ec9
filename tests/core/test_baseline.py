from __future__ import annotations

import json
import math
import random

import pytest

from supervisor.core.samples import Purpose, Sample, Void
from supervisor.core.speed.baseline import Baseline, Reference
from supervisor.core.speed.fresh_runs import RUNS_PER_SPAWN, SPAWNS_KEPT
from supervisor.core.terms import BaselineTerms

TERMS = BaselineTerms()


def run(
    rate: float | None, *, size: int = 256, age: float = 1.0, requests: int = 0, void: Void | None = None
) -> Sample:
    return Sample(
        1.0, 1.0, 1, size, Purpose.ROUTINE, rate, void, worker_age_s=age, worker_requests=requests
    )  # fmt: skip


def spawn(baseline: Baseline, *rates: float, size: int = 256) -> None:
    baseline.spawned()
    for rate in rates:
        baseline.add(run(rate, size=size), TERMS)


def test_it_says_nothing_before_five_fresh_runs() -> None:
    baseline = Baseline()
    spawn(baseline, 60, 61, 59, 62)
    assert baseline.fresh_tok_s(256) is None
    assert baseline.summary(256)["quality"] == "none"
    baseline.add(run(58), TERMS)
    assert baseline.fresh_tok_s(256) == pytest.approx(60, rel=0.001)
    assert baseline.summary(256) == {
        "decode_tok_s": baseline.fresh_tok_s(256),
        "by_prompt_tokens": {"256": baseline.fresh_tok_s(256)},
        "spawns": 1,
        "runs": 5,
        "quality": "provisional",
        "modes": [baseline.fresh_tok_s(256)],
        "spawn_tok_s": [baseline.fresh_tok_s(256)],
    }


@pytest.mark.parametrize(
    "stale",
    [
        run(20, age=TERMS.fresh_for_s + 1),
        run(20, requests=TERMS.fresh_requests),
        run(None, void=Void.CLIENT_ARRIVED),
        run(math.nan),
        run(0.0),
        run(-3.0),
    ],
)
def test_only_clean_runs_of_fresh_workers_count(stale: Sample) -> None:
    baseline = Baseline()
    spawn(baseline, 60, 60, 60, 60, 60)
    for _ in range(50):
        assert not baseline.add(stale, TERMS)
    assert (baseline.runs(256), baseline.fresh_tok_s(256)) == (5, pytest.approx(60))


def test_a_worker_that_ages_at_once_cannot_pull_it_down_for_long() -> None:
    baseline = Baseline()
    spawn(baseline, *[60.0] * 7, *[20.0] * 500)
    assert baseline.runs(256) == RUNS_PER_SPAWN
    assert baseline.fresh_tok_s(256) == pytest.approx(60)


def test_it_is_full_with_sixteen_runs_of_three_spawns() -> None:
    baseline = Baseline()
    spawn(baseline, *[60.0] * 12)
    spawn(baseline, *[60.0] * 12)
    assert not baseline.is_full(256)
    spawn(baseline, 60.0)
    assert baseline.is_full(256)
    assert not baseline.is_full(3072)
    assert baseline.summary(256)["quality"] == "full"


@pytest.mark.parametrize("order", [(26.0, 33.0), (33.0, 26.0), (26.0, 33.0, 26.0), (33.0, 26.0, 26.0)])
def test_a_spawn_in_a_slow_mode_is_left_out_whether_it_comes_first_or_last(order: tuple[float, ...]) -> None:
    chance = random.Random(5)
    baseline = Baseline()
    for mode in order:
        spawn(baseline, *[mode * math.exp(chance.gauss(0, 0.03)) for _ in range(8)])
    assert baseline.fresh_tok_s(256) == pytest.approx(33, rel=0.05)


def test_later_spawns_of_a_single_run_do_not_bend_it() -> None:
    chance = random.Random(1)
    baseline = Baseline()
    for _ in range(60):
        spawn(baseline, 60 * math.exp(chance.gauss(0, 0.14)) * (0.5 if chance.random() < 1 / 8 else 1))
    assert baseline.fresh_tok_s(256) == pytest.approx(58.5, rel=0.06)


def reference(baseline: Baseline, size: int = 256) -> Reference:
    found = baseline.reference(size)
    assert found is not None
    return found


def test_a_few_runs_that_lie_close_do_not_make_a_lane_exact_and_many_that_scatter_are_believed() -> None:
    exact, rough = Baseline(), Baseline()
    spawn(exact, 60, 60, 60, 60, 60)
    assert 0.1 < reference(exact).sd < 0.14
    for _ in range(3):
        spawn(rough, *[40, 90] * 6)
    assert 0.3 < reference(rough).sd < 0.6


def test_a_workers_own_first_runs_count_once_there_are_eight_and_the_better_reference_holds() -> None:
    baseline = Baseline()
    for _ in range(3):
        spawn(baseline, *[60.0] * 12)
    spawn(baseline, *[70.0] * 7)
    assert reference(baseline).tok_s == pytest.approx(60, rel=0.01)
    baseline.add(run(70.0), TERMS)
    assert reference(baseline).tok_s == pytest.approx(70)
    spawn(baseline, *[55.0] * 8)
    assert reference(baseline).tok_s == pytest.approx(60, rel=0.02)


def test_the_first_life_is_trusted_once_it_has_eight_runs_of_its_own() -> None:
    baseline = Baseline()
    spawn(baseline, *[60.0] * 7)
    assert not reference(baseline).is_trusted
    baseline.add(run(60.0), TERMS)
    assert reference(baseline).is_trusted
    baseline.spawned()
    assert not reference(baseline).is_trusted


def test_every_later_spawn_adds_two_runs() -> None:
    baseline = Baseline()
    for _ in range(3):
        spawn(baseline, *[60.0] * 12)
    for spawns in range(100):
        spawn(baseline, *[60.0] * 12)
        assert baseline.runs(256) <= 36 + 2 * (spawns + 1)
    assert baseline.spawns(256) == SPAWNS_KEPT
    assert baseline.runs(256) == 36 + 2 * (SPAWNS_KEPT - 3)


def test_a_spawn_in_the_slow_mode_is_named_and_once_accepted_held_to_its_own_runs() -> None:
    baseline = Baseline()
    for mode in (33.0, 33.0, 26.0):
        spawn(baseline, *[mode] * 8)
    assert baseline.modes(256) == pytest.approx((33, 26))
    spawn(baseline, *[26.0] * 4)
    assert not baseline.is_slow_spawn(256)
    baseline.add(run(26.0), TERMS)
    assert baseline.is_slow_spawn(256)
    baseline.accept(256)
    assert reference(baseline).tok_s == pytest.approx(26)
    spawn(baseline, *[33.0] * 5)
    assert not baseline.is_slow_spawn(256)
    assert reference(baseline).tok_s == pytest.approx(33)


def test_anchored_anew_it_moves_all_sizes_by_what_the_smallest_shows() -> None:
    baseline = Baseline()
    for _ in range(3):
        spawn(baseline, *[60.0] * 6)
        for _ in range(6):
            baseline.add(run(40.0, size=3072), TERMS)
    assert baseline.anchor_anew(256, [30.0] * 4) is None
    assert baseline.anchor_anew(256, [30.0] * 5) == pytest.approx(0.5)
    assert baseline.fresh_tok_s(256) == pytest.approx(30, rel=0.01)
    assert baseline.fresh_tok_s(3072) == pytest.approx(20, rel=0.01)
    assert baseline.is_full(256)


def test_each_prompt_size_has_its_own() -> None:
    baseline = Baseline()
    spawn(baseline, *[60.0] * 5)
    spawn(baseline, *[40.0] * 5, size=3072)
    assert (baseline.fresh_tok_s(256), baseline.fresh_tok_s(3072)) == pytest.approx((60, 40))
    assert baseline.spawns(256) == 1


def test_it_outlives_the_daemon_and_the_next_worker_is_another_spawn() -> None:
    baseline = Baseline()
    spawn(baseline, *[60.0] * 5)
    document = baseline.to_json()
    again = Baseline.from_json(json.loads(json.dumps(document)))
    assert again.to_json() == document
    again.add(run(61), TERMS)
    assert again.spawns(256) == 2
    assert again.to_json() != document


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"spawns": 3},
        {"spawns": {"256": 4, "x": [[1.0]]}},
        {"spawns": {"256": [3, ["a", None, True, -1.0, math.nan]]}},
    ],
)
def test_what_cannot_be_read_is_left_out(document: dict[str, object]) -> None:
    assert Baseline.from_json(document).to_json() == {"spawns": {}}
