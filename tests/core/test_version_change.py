"""What kept baselines tell of a change of version."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.core.speed.version_change import KeptBaseline, version_change


def kept(
    fingerprint: str, wall: float, tok_s: float, *, spawns: int = 4, model: str = "qwen", **versions: str
) -> KeptBaseline:
    dice = random.Random(wall)
    rates = [[tok_s * dice.gauss(1, 0.02) for _ in range(8)] for _ in range(spawns)]
    ran = {"model": model, "versions": {name.replace("_", "-"): version for name, version in versions.items()}}
    return KeptBaseline(fingerprint, wall, {"spawns": {"256": rates, "3072": rates}, "ran": ran})


OLD = kept("old", 1.0, 60.0, mlx_lm="0.31.0", mlx="0.32.2")


def test_an_update_that_made_fresh_workers_slower_is_named_with_its_interval() -> None:
    change = version_change([OLD, kept("new", 2.0, 51.0, mlx_lm="0.32.2", mlx="0.32.2")], "new")
    assert change is not None
    assert change.ratio == pytest.approx(0.85, abs=0.02)
    assert change.interval[0] < change.ratio < change.interval[1] < 1
    assert change.text.startswith("since mlx-lm 0.32.2 a fresh worker does 1")
    assert " % less than with mlx-lm 0.31.0 (" in change.text


def test_a_faster_one_is_named_as_well_and_so_is_another_model() -> None:
    change = version_change([OLD, kept("new", 2.0, 90.0, model="qwen-4bit", mlx_lm="0.31.0", mlx="0.32.2")], "new")
    assert change is not None
    assert change.text.startswith("since qwen-4bit a fresh worker does")
    assert "more than with qwen (" in change.text


def test_a_difference_within_the_interval_is_none() -> None:
    one_slow_spawn = kept("new", 2.0, 60.0, mlx="0.32.3")
    one_slow_spawn.document["spawns"]["256"][0] = [20.0] * 8
    assert version_change([OLD, one_slow_spawn], "new") is None


def test_a_difference_so_small_that_it_may_be_the_day_s_is_none() -> None:
    assert version_change([OLD, kept("new", 2.0, 59.0, mlx_lm="0.32.2", mlx="0.32.2")], "new") is None


def test_three_spawns_do_not_tell_a_difference_that_four_do() -> None:
    def told(spawns: int) -> bool:
        pair = [
            kept("old", 1.0, 60.0, spawns=spawns, mlx="1"),
            kept("new", 2.0, 55.0, spawns=spawns, mlx="2"),
        ]
        return version_change(pair, "new") is not None

    assert (told(3), told(4)) == (False, True)


def test_the_newest_other_version_is_what_is_compared_with() -> None:
    between = kept("between", 1.5, 50.0, mlx_lm="0.32.0", mlx="0.32.2")
    change = version_change([OLD, between, kept("new", 2.0, 60.0, mlx_lm="0.32.2", mlx="0.32.2")], "new")
    assert change is not None
    assert change.then == "mlx-lm 0.32.0"


def test_other_settings_under_the_same_version_are_no_change() -> None:
    assert version_change([OLD, kept("new", 2.0, 30.0, mlx_lm="0.31.0", mlx="0.32.2")], "new") is None


def test_a_package_that_came_or_went_is_named() -> None:
    change = version_change([OLD, kept("new", 2.0, 30.0, mlx="0.32.2")], "new")
    assert change is not None
    assert (change.now, change.then) == ("mlx-lm none", "mlx-lm 0.31.0")


JSON = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["spawns", "256", "ran", "model"]), inner)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["spawns", "ran", "noise"]), JSON))
def test_a_document_of_any_version_says_nothing_or_something_but_never_fails(document: dict[str, Any]) -> None:
    version_change([OLD, KeptBaseline("new", 2.0, document)], "new")
    version_change([KeptBaseline("old", 1.0, document), OLD], "old")
