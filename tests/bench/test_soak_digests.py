"""The soak's own accounts: which answers count as mixed up between lanes."""

from __future__ import annotations

from typing import Any

from bench.soak_digests import Comparison, Whole, compared

ENDED = 100.0


def said(request_id: str, sha256: str) -> dict[str, Any]:
    return {"request_id": request_id, "sha256": sha256}


def compare(*lines: dict[str, Any], killed_at: float | None = None) -> Comparison:
    """The answer to home-1, where these are what workers of `home` wrote down."""

    def deaths(_lane: str, since: float, until: float) -> int:
        return int(killed_at is not None and since <= killed_at <= until)

    whole = {"home": {"home-1": Whole("aa", ENDED)}, "beside": {}}
    return compared(whole, {"home": lines, "beside": ()}, deaths)


def test_an_answer_that_its_own_worker_wrote_down_is_in_order() -> None:
    assert compare(said("home-1", "aa")) == Comparison()


def test_an_answer_with_other_bytes_is_mixed_up_even_if_a_worker_died_just_then() -> None:
    found = compare(said("home-1", "bb"), killed_at=ENDED)
    assert len(found.mixed) == 1
    assert not found.unwritten


def test_an_answer_that_nobody_wrote_down_is_mixed_up() -> None:
    assert len(compare().mixed) == 1
    assert len(compare(killed_at=ENDED - 10).mixed) == 1


def test_a_worker_killed_right_after_its_answer_may_not_have_written_it_down() -> None:
    found = compare(killed_at=ENDED + 0.1)
    assert not found.mixed
    assert len(found.unwritten) == 1


def test_a_request_that_came_to_another_lane_is_mixed_up() -> None:
    assert compare(said("home-1", "aa"), said("beside-7", "cc")).mixed == ["lane home got beside-7"]
