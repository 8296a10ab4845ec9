"""Numbers with units: written, read and written back."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from supervisor.settings import units


@settings(deadline=None)
@given(st.integers(min_value=1, max_value=10 * 365 * 86400 * 1000))
def test_a_duration_survives_being_written_and_read(milliseconds: int) -> None:
    seconds = milliseconds / 1000
    assert units.parse_duration(units.format_duration(seconds)) == seconds


@settings(deadline=None)
@given(st.integers(min_value=0, max_value=10**15))
def test_a_size_survives_being_written_and_read(size: int) -> None:
    assert units.parse_size(units.format_size(size)) == size


@settings(deadline=None)
@given(st.integers(min_value=0, max_value=10**12))
def test_a_count_survives_being_written_and_read(count: int) -> None:
    assert units.parse_count(units.format_count(count)) == count


@settings(deadline=None)
@given(st.integers(min_value=1, max_value=10**4))
def test_a_share_survives_being_written_and_read(hundredths: int) -> None:
    share = hundredths / 10**4
    assert units.parse_share(units.format_share(share)) == share


@pytest.mark.parametrize(
    ("text", "seconds"), [("200ms", 0.2), ("90s", 90), ("1.5m", 90), ("6h", 21600), ("7d", 604800), ("0s", 0)]
)
def test_durations_are_seconds(text: str, seconds: float) -> None:
    assert units.parse_duration(text) == seconds


@pytest.mark.parametrize(
    ("text", "size"), [("64MB", 64 * 10**6), ("24GB", 24 * 10**9), ("24GiB", 24 * 2**30), ("1.5kB", 1500), ("7B", 7)]
)
def test_sizes_are_bytes_by_tens_or_by_twos(text: str, size: int) -> None:
    assert units.parse_size(text) == size


@pytest.mark.parametrize(("text", "count"), [("280k", 280_000), ("1.5M", 1_500_000), ("20", 20)])
def test_counts_may_be_written_in_thousands(text: str, count: int) -> None:
    assert units.parse_count(text) == count


@pytest.mark.parametrize("text", ["", "s", "5", "5 s", "5S", "+5s", "-5s", "1e3s", "٣s", "5s\n", "9" * 40 + "s"])
def test_anything_else_is_no_duration(text: str) -> None:
    with pytest.raises(units.UnitError):
        units.parse_duration(text)


@settings(deadline=None)
@given(st.text(max_size=20))
def test_any_text_is_read_or_refused_with_a_unit_error(text: str) -> None:
    for parse in (units.parse_duration, units.parse_size, units.parse_count, units.parse_share, units.parse_ratio):
        with contextlib.suppress(units.UnitError):
            assert parse(text) >= 0
