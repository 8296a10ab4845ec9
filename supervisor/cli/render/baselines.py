"""What fresh means for a lane, and from which spawns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from supervisor.cli.render.lanes import fresh_in_words
from supervisor.cli.render.layout import Column, hang, lay_out
from supervisor.cli.words import NOTHING, clock, rate

SPAWNS = (
    Column("SPAWN", 90, "right"),
    Column("MEASURED", 70),
    Column("TOK/S", 100, "right"),
    Column("RUNS", 50, "right"),
)


def baseline_lines(name: str, baseline: object, width: int | None, console: Console) -> list[Text]:
    """A line for the lane, and one for each spawn where the daemon tells of them."""
    text = Text(name, style="name").append("  ").append_text(fresh_in_words(baseline))
    lines = hang(text, 0, width, console)
    spawns = baseline.get("spawns") if isinstance(baseline, Mapping) else None
    if isinstance(spawns, Sequence) and not isinstance(spawns, str):
        rows = [_spawn_row(spawn) for spawn in spawns if isinstance(spawn, Mapping)]
        lines += [Text("  ").append_text(line) for line in (lay_out(SPAWNS, rows, width) if rows else [])]
    return lines


def _spawn_row(spawn: Mapping[str, Any]) -> list[Text]:
    at = spawn.get("time") or spawn.get("wall") or spawn.get("at")
    runs = spawn.get("runs")
    return [
        Text(str(spawn.get("generation", NOTHING))),
        Text(clock(at) if at else NOTHING),
        Text(rate(spawn.get("decode_tok_s"))),
        Text(str(len(runs) if isinstance(runs, list) else runs or NOTHING)),
    ]
