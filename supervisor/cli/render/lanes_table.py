"""Lanes as a table: a line of numbers each, and under it why it is as it is and what comes next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.text import Text

from supervisor.cli.render.lane_facts import (
    STYLE_OF_VERDICT,
    Lane,
    measured_at,
    ratio_of,
    speed_of,
    state,
    status_of,
    why_and_next,
)
from supervisor.cli.render.layout import Column, cut, hang, lay_out
from supervisor.cli.words import ago
from supervisor.core.words import NOTHING, long_length, rate, share, size

COLUMNS = (
    Column("LANE", 100),
    Column("STATE", 90),
    Column("TOK/S", 80, "right"),
    Column("FRESH", 30, "right"),
    Column("OF FRESH", 70, "right"),
    Column("MEASURED", 40),
    Column("WORKER UP", 50),
    Column("MEMORY", 20, "right"),
    Column("REQUESTS", 60),
)
TREND = Column("TREND", 65)
LONGEST_NAME = 24
"""Beside a trend: a longer name would leave no room for the numbers."""


def lanes_table(
    lanes: Sequence[Lane],
    width: int | None,
    console: Console,
    trends: Mapping[str, str] | None = None,
    *,
    most_lines: int | None = None,
) -> list[Text]:
    """A line of numbers for each lane, and under it why it is as it is and what comes next, in ``most_lines``."""
    if not lanes:
        return [Text("no lanes", style="quiet")]
    columns = (*COLUMNS, TREND) if trends is not None else COLUMNS
    rows = []
    for lane in lanes:
        row = lane_row(lane)
        if trends is not None:
            row[0].truncate(LONGEST_NAME, overflow="ellipsis")
            row.append(
                Text(trends.get(str(lane.get("name")), ""), style=STYLE_OF_VERDICT.get(status_of(lane), "quiet"))
            )
        rows.append(row)
    head, *numbers = lay_out(columns, rows, width)
    lines = [head]
    for lane, line in zip(lanes, numbers, strict=True):
        lines.append(line)
        why = hang(Text(why_and_next(lane), style="quiet"), width, console, first=2, rest=2)
        lines.extend(cut(why, most_lines))
    return lines


def lane_row(lane: Lane) -> list[Text]:
    """The cells of a lane under ``COLUMNS``."""
    worker = lane.get("worker") or {}
    return [
        Text(str(lane.get("name", NOTHING)), style="name"),
        state(lane),
        Text(rate(speed_of(lane))),
        Text(rate((lane.get("baseline") or {}).get("decode_tok_s")), style="quiet"),
        Text(share(ratio_of(lane)), style=STYLE_OF_VERDICT.get(status_of(lane), "quiet")),
        Text(ago(measured_at(lane)) + (", void" if (lane.get("last_probe") or {}).get("void") else "")),
        Text(long_length(worker.get("uptime_s")) if worker else NOTHING),
        Text(size(worker.get("memory_bytes"))),
        Text(requests_of(lane)),
    ]


def requests_of(lane: Lane) -> str:
    """``2 now``, ``2 now, 5 wait``; a blank where there are none."""
    inflight, queued = int(lane.get("inflight") or 0), int(lane.get("queued") or 0)
    parts = ([f"{inflight} now"] if inflight else []) + ([f"{queued} wait"] if queued else [])
    return ", ".join(parts) or NOTHING
