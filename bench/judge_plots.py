"""Draw what bench/results/judge.json holds into docs/judge_*.svg, legible on light and on dark pages.

python bench/judge_plots.py [FILE]
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

ROOT = Path(__file__).parents[1]
RESULT = ROOT / "bench" / "results" / "judge.json"
DOCS = ROOT / "docs"

WIDTH, ROW, LEFT, RIGHT, TOP, BOTTOM = 760, 30, 230, 30, 64, 34
DOT = 5
STYLE = """
text { font: 13px system-ui, sans-serif; fill: #24292f; } .title { font-size: 15px; font-weight: 600; }
.axis { stroke: #d0d7de; } .range { stroke: #57606a; stroke-width: 3; stroke-linecap: round; }
.bar { stroke: #cf222e; stroke-width: 3; } .a { fill: #8c959f; } .b { fill: #bf8700; } .c { fill: #0969da; }
.d { fill: #1a7f37; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; } .axis { stroke: #3d444d; } .range { stroke: #9198a1; } .bar { stroke: #ff7b72; }
  .a { fill: #9198a1; } .b { fill: #e3b341; } .c { fill: #79c0ff; } .d { fill: #56d364; }
}
"""

Place = Callable[[float], float]
"""Where a value lies, from 0 (left) to 1."""


@dataclass(frozen=True)
class Row:
    """One line of a chart. ``dots``: class and value; ``bar``: the most, or the least, that is asked for."""

    label: str
    dots: Sequence[tuple[str, float]]
    bar: float | None = None
    interval: tuple[float, float] | None = None


def chart(title: str, legend: Sequence[tuple[str, str]], rows: Sequence[Row], ticks: Sequence[float], at: Place) -> str:
    """One chart as SVG."""
    height = TOP + ROW * len(rows) + BOTTOM
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
        f"<title>{escape(title)}</title><style>{STYLE}</style>",
        f'<text class="title" x="10" y="22">{escape(title)}</text>',
        *_legend(legend),
    ]
    for tick in ticks:
        x = _x(at, tick)
        parts.append(f'<line class="axis" x1="{x}" x2="{x}" y1="{TOP}" y2="{height - BOTTOM}"/>')
        parts.append(f'<text x="{x}" y="{height - BOTTOM + 20}" text-anchor="middle">{tick:g}</text>')
    for index, row in enumerate(rows):
        parts += _row(row, TOP + ROW * (index + 0.5), at)
    return "\n".join([*parts, "</svg>", ""])


def _legend(entries: Sequence[tuple[str, str]]) -> list[str]:
    parts, x = [], 10.0
    for mark, words in entries:
        shape = (
            f'<line class="bar" x1="{x + DOT}" x2="{x + DOT}" y1="36" y2="50"/>'
            if mark == "bar"
            else f'<circle class="{mark}" cx="{x + DOT}" cy="43" r="{DOT}"/>'
        )
        parts.append(f'{shape}<text x="{x + 16}" y="48">{escape(words)}</text>')
        x += 32 + 7.2 * len(words)
    return parts


def _row(row: Row, y: float, at: Place) -> list[str]:
    parts = [f'<text x="{LEFT - 12}" y="{y + 4}" text-anchor="end">{escape(row.label)}</text>']
    if row.interval:
        low, high = (_x(at, end) for end in row.interval)
        parts.append(f'<line class="range" x1="{low}" x2="{high}" y1="{y}" y2="{y}"/>')
    if row.bar is not None:
        x = _x(at, row.bar)
        parts.append(f'<line class="bar" x1="{x}" x2="{x}" y1="{y - 9}" y2="{y + 9}"/>')
    parts += [f'<circle class="{mark}" cx="{_x(at, value)}" cy="{y}" r="{DOT}"/>' for mark, value in row.dots]
    return parts


def _x(at: Place, value: float) -> float:
    return round(LEFT + min(max(at(value), 0.0), 1.0) * (WIDTH - LEFT - RIGHT), 1)


def linear(low: float, high: float) -> Place:
    """A plain scale."""
    return lambda value: (value - low) / (high - low)


def logarithmic(low: float, high: float) -> Place:
    """A scale of factors; what lies below ``low`` lies at the edge."""
    return lambda value: math.log(max(value, low) / low) / math.log(high / low)


# ---- the three charts ----


def delays(scenarios: Sequence[dict[str, Any]]) -> str:
    """Minutes until a slow worker is found."""
    rows = [
        Row(
            line["scenario"],
            [("a", line["delay_min_p50"]), ("c", line["delay_min_p95"])],
            bar=line["bars"].get("delay_min_p95"),
            interval=(line["delay_min_p50"], line["delay_min_p95"]),
        )
        for line in scenarios
        if "delay_min_p95" in line
    ]
    legend = [("a", "half of all"), ("c", "19 of 20"), ("bar", "at most (19 of 20)")]
    title = "Minutes until a slow worker is convicted (logarithmic)"
    return chart(title, legend, rows, (5, 10, 20, 50, 100, 200), logarithmic(3, 300))


def false_recycles(scenarios: Sequence[dict[str, Any]]) -> str:
    """Recycles of workers that had not aged."""
    rows = []
    for line in scenarios:
        if "interval_per_lane_year" in line:
            low, high = line["interval_per_lane_year"]
            bar = line["bars"].get("false_recycles_per_lane_year")
            rows.append(Row(line["scenario"], [("c", line["false_recycles_per_lane_year"])], bar, (low, high)))
    legend = [("c", "seen, with its 95 % interval"), ("bar", "at most")]
    title = "False recycles a lane-year (logarithmic; none seen lies at the left edge)"
    return chart(title, legend, rows, (0.1, 1, 10), logarithmic(0.05, 30))


def kept(policies: Sequence[dict[str, Any]]) -> str:
    """Tokens kept by policy."""
    marks = (("a", "none"), ("b", "cron_6h"), ("c", "detector"), ("d", "learned_age"))
    rows = [
        Row(line["ageing"], [(mark, line[name]) for mark, name in marks], line["best_period_in_hindsight"])
        for line in policies
    ]
    legend = [*((mark, name.replace("_", " ")) for mark, name in marks), ("bar", "best period in hindsight")]
    return chart("Tokens kept, per cent of an always fresh worker's", legend, rows, range(20, 101, 20), linear(15, 102))


def main() -> None:
    """Draw all three."""
    result = json.loads(Path(sys.argv[1] if len(sys.argv) > 1 else RESULT).read_text())
    charts = {
        "judge_delay.svg": delays(result["scenarios"]),
        "judge_false.svg": false_recycles(result["scenarios"]),
        "judge_kept.svg": kept(result["policies"]),
    }
    for name, drawn in charts.items():
        (DOCS / name).write_text(drawn)


if __name__ == "__main__":
    main()
