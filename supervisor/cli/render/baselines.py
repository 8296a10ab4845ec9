"""What fresh means for each lane, and from which spawns that is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from supervisor.cli.render.layout import Column, hang, lay_out, painted
from supervisor.cli.words import clock
from supervisor.core.words import NOTHING, plural, rate

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


def fresh_in_words(baseline: object) -> Text:
    """``47.1 tok/s after 256 tokens, 43.9 after 3072; from 3 spawns and 24 runs; good``."""
    if not isinstance(baseline, Mapping) or not baseline:
        return Text("not known yet", style="quiet")
    parts = [_speeds_by_size(baseline), _where_from(baseline), str(baseline.get("quality") or "")]
    return Text("; ".join(part for part in parts if part))


def _speeds_by_size(baseline: Mapping[str, Any]) -> str:
    """``47.1 tok/s after 256 tokens, 43.9 after 3072``."""
    by_size = baseline.get("by_prompt_tokens") or {}
    if not by_size:
        return f"{rate(baseline.get('decode_tok_s'))} tok/s"
    (smallest, first), *others = sorted(by_size.items(), key=lambda item: int(item[0]))
    more = "".join(f", {rate(value)} after {tokens}" for tokens, value in others)
    return f"{rate(first)} tok/s after {smallest} tokens{more}"


def _where_from(baseline: Mapping[str, Any]) -> str:
    """``from 3 spawns and 24 runs``."""
    spawns, runs = _count_of(baseline.get("spawns")), _count_of(baseline.get("runs"))
    return f"from {plural(spawns, 'spawn')} and {plural(runs, 'run')}"


def _count_of(value: object) -> int:
    """A number, or how many things a list holds."""
    if isinstance(value, (list, tuple)):
        return len(value)
    return int(value) if isinstance(value, (int, float)) else 0
