"""The age of rows, by running time: nothing goes early, and little stays late."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from supervisor.history.age import MARKS, Age

KEEP_S = 9000.0
LOOKS = st.lists(st.tuples(st.floats(0.0, 3 * KEEP_S), st.integers(0, 5)), max_size=200)
"""Running time before each look, and the rows that were written meanwhile."""


@given(looks=LOOKS, is_restarted=st.booleans())
def test_no_row_is_old_before_its_time_and_none_is_missed_for_long(
    looks: list[tuple[float, int]], is_restarted: bool
) -> None:
    age, lived_s, longest_s = Age(), 0.0, 0.0
    written_at: list[float] = []
    for ran_s, rows in looks:
        written_at += [lived_s] * rows
        lived_s += ran_s
        longest_s = max(longest_s, ran_s)
        age.look(ran_s, {"samples": len(written_at)}, KEEP_S)
        if is_restarted:
            age = Age.from_json(age.to_json())
        old = age.last_old("samples", KEEP_S)
        slack_s = KEEP_S / MARKS + 2 * longest_s
        assert all(lived_s - at >= KEEP_S for at in written_at[:old])
        assert all(lived_s - at <= KEEP_S + slack_s + 1e-6 for at in written_at[old:])
        assert len(age.to_json()["marks"]) <= MARKS + 2
