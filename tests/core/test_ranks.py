"""The middle of many pairwise means is found without sorting them all, and is the same."""

from __future__ import annotations

from itertools import combinations_with_replacement
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.core.speed.ranks import MANY, hodges_lehmann

RATES = st.floats(-3, 8).map(lambda value: round(value, 3)) | st.sampled_from([4.0, 4.1, 3.3])


@given(st.lists(RATES, min_size=MANY, max_size=60))
def test_the_centre_of_many_values_is_the_median_of_all_their_pairwise_means(values: list[float]) -> None:
    means = [(one + other) / 2 for one, other in combinations_with_replacement(values, 2)]
    assert hodges_lehmann(values) == pytest.approx(median(means), abs=1e-12)


def test_values_that_are_all_alike_are_their_own_centre() -> None:
    assert hodges_lehmann([4.2] * (2 * MANY)) == 4.2
