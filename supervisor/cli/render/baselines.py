"""What fresh means for each lane, and from which spawns that is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from supervisor.cli.render.lanes import fresh_in_words
from supervisor.cli.render.layout import Column, hang, lay_out, painted
from supervisor.cli.words import NOTHING, clock, rate

SPAWNS = (
    Column("SPAWN", 90, "right"),
    Column("MEASURED", 70),
    Column("TOK/S", 100, "right"),
    Column("RUNS", 50, "right"),
)


def baseline_lines(baselines: Mapping[str, Any], width: int | None, console: Console) -> list[Text]:
    """A line for each lane, and under it one for each spawn where the daemon tells of them."""
    longest = max((len(name) for name in baselines), default=0)
    lines = []
    for name, baseline in baselines.items():
        text = painted(f"{name:<{longest}}  ", "name").append_text(fresh_in_words(baseline))
        lines += hang(text, width, console, rest=longest + 2)
        lines += _spawns(baseline)
    return lines


def _spawns(baseline: object) -> list[Text]:
    spawns = baseline.get("spawns") if isinstance(baseline, Mapping) else None
    if not isinstance(spawns, Sequence) or isinstance(spawns, str):
        return []
    rows = [_spawn_row(spawn) for spawn in spawns if isinstance(spawn, Mapping)]
    return [Text("  ").append_text(line) for line in lay_out(SPAWNS, rows, None)] if rows else []


def _spawn_row(spawn: Mapping[str, Any]) -> list[Text]:
    at = spawn.get("time") or spawn.get("wall") or spawn.get("at")
    runs = spawn.get("runs")
    return [
        Text(str(spawn.get("generation", NOTHING))),
        Text(clock(at) if at else NOTHING),
        Text(rate(spawn.get("decode_tok_s"))),
        Text(str(len(runs) if isinstance(runs, list) else runs or NOTHING)),
    ]
