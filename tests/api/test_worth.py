"""What the recycles were worth."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from supervisor.api.worth import counted, worth

FLOOR = {"decode_tok_s": 20.0, "ratio": 0.33}


def recycle(at: float, **changes: Any) -> dict[str, Any]:
    time = datetime.fromtimestamp(at, UTC).isoformat()
    record = {"time": time, "lane": "a", "outcome": "cured", "before": FLOOR, "downtime_s": 3.0}
    return {**record, "requests": {"held": 2, "failed": 0}, **changes}


def run(at: float, rate: float | None, **changes: Any) -> dict[str, Any]:
    return {"wall": at, "decode_tok_s": rate, "void": None, "prompt_tokens": 256, "is_warmup": False, **changes}


RUNS = [run(at * 100.0, 20.0 if at < 10 else 60.0) for at in range(20)]


def test_recycles_and_what_clients_felt_are_added_up() -> None:
    found = worth([recycle(1000), recycle(1500, requests={"held": 1, "failed": 1})], {})
    assert (found["recycles"], found["downtime_s"], found["held"], found["failed"]) == (2, 6.0, 3, 1)
    assert found["gain"] is None


def test_the_gain_is_over_what_the_old_worker_would_have_given() -> None:
    # 1000 s at 20 tok/s and 900 s at 60, where without the recycle all would have been at 20
    assert worth([recycle(1000)], {"a": RUNS})["gain"] == round(74_000 / 38_000 - 1, 4)


def test_a_worker_that_is_slower_than_its_forerunner_gains_nothing() -> None:
    assert worth([recycle(0, before={"decode_tok_s": 90.0, "ratio": 0.9})], {"a": RUNS})["gain"] == 0.0


def test_void_runs_and_other_sizes_do_not_count() -> None:
    noise = [run(50.0, None, void="lane_busy"), run(60.0, 1.0, prompt_tokens=3072), run(70.0, 900.0, is_warmup=True)]
    whole = sorted([*RUNS, *noise], key=lambda one: float(one["wall"]))
    assert worth([recycle(1000)], {"a": whole}) == worth([recycle(1000)], {"a": RUNS})


def test_a_long_silence_stands_for_half_an_hour_only() -> None:
    runs = [run(0.0, 20.0), run(100.0, 60.0), run(1_000_000.0, 60.0)]
    assert worth([recycle(50)], {"a": runs})["gain"] == round((20 * 100 + 60 * 1800) / (20 * 100 + 20 * 1800) - 1, 4)


def test_what_was_aborted_or_is_older_or_tells_no_time_is_not_counted() -> None:
    kept = recycle(2000)
    others = [recycle(2000, outcome="aborted"), recycle(500), recycle(2000, time="torn"), {"lane": "a"}]
    assert counted([kept, *others], 1000.0) == [kept]
