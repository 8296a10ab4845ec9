"""Numbers in words."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from rich.console import Console
from rich.text import Text

from supervisor.cli.render.layout import Column, hang, lay_out
from supervisor.cli.words import ago, sparkline
from supervisor.core.words import length, long_length, many, rate, share, size


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (rate(8.423), "8.42"),
        (rate(46.31), "46.3"),
        (rate(185.2), "185"),
        (rate(None), "-"),
        (share(0.308), "31 %"),
        (size(1_412_000_000), "1.4 GB"),
        (size(12), "12 B"),
        (many(950), "950"),
        (many(12_480), "12.5k"),
        (many(1_204_000), "1.2M"),
        (length(0.0), "0 s"),
        (length(4.24), "4.2 s"),
        (length(0.0352), "35 ms"),
        (length(9.96), "9.9 s"),
        (length(59.9), "59 s"),
        (length(7199), "1 h"),
        (long_length(22_380), "6 h 13 min"),
        (long_length(7.3), "7 s"),
        (long_length(172_800), "2 d"),
        (sparkline([0.0, 0.5, 1.0]), "▁▅█"),
        (sparkline([]), ""),
        (sparkline([5.0], top=10.0), "▅"),
    ],
)
def test_numbers_read_well(said: str, expected: str) -> None:
    assert said == expected


def test_a_moment_is_told_from_now() -> None:
    now = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
    assert ago("2026-03-01T10:00:00+00:00", now) == "2 h ago"
    assert ago("2026-03-01T13:00:01+01:00", now) == "now", "a clock that runs ahead says nothing odd"
    assert ago(now.timestamp() - 40, now) == "40 s ago"
    assert ago("yesterday", now) == "-"


def test_a_narrow_terminal_loses_the_least_important_column_first() -> None:
    columns = (Column("NAME", 9), Column("EXTRA", 1), Column("TOK/S", 5, "right"))
    rows = [[Text("qwen"), Text("something long"), Text("8.42")]]
    assert [line.plain for line in lay_out(columns, rows, 20)] == ["NAME  TOK/S", "qwen   8.42"]
    assert [line.plain for line in lay_out(columns, rows, 3)] == ["NAME", "qwen"]


def test_no_line_ends_between_a_number_and_its_unit() -> None:
    lines = hang(Text("the worker holds 21.4 GB now and is up 6 h"), 25, Console(), first=0, rest=2)
    assert [line.plain for line in lines] == ["the worker holds", "  21.4 GB now and is up", "  6 h"]
