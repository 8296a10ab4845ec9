from __future__ import annotations

import pytest

from engine.costs import Costs, bucket_of


def test_contexts_fall_into_doubling_buckets():
    assert [bucket_of(context) for context in (0, 1, 256, 257, 512, 513, 8192)] == [256, 256, 256, 512, 512, 1024, 8192]


def test_one_stalled_step_changes_no_cost():
    costs = Costs()
    for seconds in (0.050, 0.051, 3.0, 0.049, 0.050):
        costs.observe(0, 100, seconds)
    assert costs.plain(100) == pytest.approx(0.050)


def test_a_cycle_at_an_unmeasured_context_grows_as_plain_steps_do():
    costs = Costs()
    costs.observe(0, 100, 0.05)
    costs.observe(3, 100, 0.10)
    costs.observe(0, 4000, 0.15)
    assert costs.cycle(3, 4000) == pytest.approx(0.30)
    assert costs.cycle(7, 100) is None


def test_ageing_is_told_apart_from_a_growing_context():
    costs = Costs()
    for context, seconds in ((100, 0.05), (4000, 0.10)):
        for _ in range(20):
            costs.observe(0, context, seconds)
    assert costs.ageing(4000) == pytest.approx(1.0)
    for _ in range(20):
        costs.observe(0, 4000, 0.15)
    assert costs.ageing(4000) == pytest.approx(1.5)
    assert costs.ageing(100) == pytest.approx(1.0)
    assert costs.ageing(1000) is None
