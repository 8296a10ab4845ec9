"""What is believed of a worker's own numbers."""

from __future__ import annotations

from supervisor.shell.lane.vital_signs import counters_in


def test_what_is_no_number_in_stats_tells_nothing_and_breaks_nothing() -> None:
    assert counters_in({"generated_tokens": 7, "prompt_tokens": 3.5, "requests": 9}) == (7.0, 3.5)
    assert counters_in({"generated_tokens": None, "prompt_tokens": "many"}) == ()
    assert counters_in({}) == ()
