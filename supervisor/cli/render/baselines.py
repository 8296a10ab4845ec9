"""What fresh means for each lane, and from which spawns that is known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.text import Text

from supervisor.cli.render.layout import hang, labelled, painted
from supervisor.cli.words import clock
from supervisor.core.words import long_length, plural, rate

QUALITIES = {
    "none": "none yet: nobody is judged",
    "provisional": "provisional: only a worker far too slow is convicted",
}

LONGEST_BESIDE = 16
"""A longer lane's name stands above what is said of it."""


def baseline_lines(baselines: Mapping[str, Any], width: int | None, console: Console) -> list[Text]:
    """A line for each lane, and under it what is known besides."""
    indent = min(max((len(name) for name in baselines), default=0), LONGEST_BESIDE) + 2
    lines = []
    for name, baseline in baselines.items():
        lines += labelled(painted(name, "name"), fresh_in_words(baseline), width, console, indent=indent)
        for words in _more(baseline):
            lines += hang(Text(words, style="quiet"), width, console, first=indent, rest=indent)
        if isinstance(baseline, Mapping) and baseline.get("version_change"):
            change = Text(baseline["version_change"]["text"], style="warn")
            lines += hang(change, width, console, first=indent, rest=indent)
    return lines


def _more(baseline: object) -> list[str]:
    """What is known besides, a sentence each."""
    if not isinstance(baseline, Mapping):
        return []
    said = (
        _each_spawn(baseline),
        _modes(baseline),
        _reading(baseline),
        _ageing(baseline),
        _changed(baseline),
    )
    return [words for words in said if words]


def _each_spawn(baseline: Mapping[str, Any]) -> str:
    rates = baseline.get("spawn_tok_s") or []
    return f"each spawn: {', '.join(map(rate, rates))} tok/s" if len(rates) > 1 else ""


def _modes(baseline: Mapping[str, Any]) -> str:
    modes = baseline.get("modes") or []
    return (
        f"spawns come up at {' or '.join(map(rate, modes))} tok/s; the fastest is held to be fresh" if modes[1:] else ""
    )


def _reading(baseline: Mapping[str, Any]) -> str:
    reading = baseline.get("prefill") or {}
    if reading.get("tok_s") is None:
        return ""
    return f"reads prompts at {_speeds_by_size(reading)}; {_where_from(reading)}; {_quality(reading)}"


def _ageing(baseline: Mapping[str, Any]) -> str:
    """``in 5 lives, replacing a worker at the age of 3 h 10 min has paid best``."""
    ageing = baseline.get("ageing") or {}
    seen = plural(_count_of(ageing.get("lives")), "life", "lives")
    if ageing.get("is_left_alone"):
        return f"seen to age in {seen}; this worker is left alone, to see what becomes of old ones"
    if ageing.get("best_age_s") is None:
        return (
            f"seen to age in {seen}; no age is known yet at which replacing a worker pays"
            if ageing.get("lives")
            else ""
        )
    return f"in {seen}, replacing a worker at the age of {long_length(ageing['best_age_s'])} has paid best"


def _changed(baseline: Mapping[str, Any]) -> str:
    changed = baseline.get("changed")
    if not isinstance(changed, Mapping):
        return ""
    parts = ", ".join(changed.get("parts") or [])
    return f"what was known before {clock(changed.get('time'))} was dropped: changed was {parts}"


def fresh_in_words(baseline: object) -> Text:
    """``47.1 tok/s after 256 tokens, 43.9 after 3072; from 3 spawns and 24 runs; good``."""
    if not isinstance(baseline, Mapping) or not baseline.get("runs"):
        return Text("not known yet", style="quiet")
    parts = [_speeds_by_size(baseline), _where_from(baseline), _quality(baseline)]
    return Text("; ".join(part for part in parts if part))


def _quality(baseline: Mapping[str, Any]) -> str:
    """``provisional: only a worker far too slow is convicted``."""
    quality = str(baseline.get("quality") or "")
    return QUALITIES.get(quality, quality)


def _speeds_by_size(baseline: Mapping[str, Any]) -> str:
    """``47.1 tok/s after 256 tokens, 43.9 after 3072``."""
    by_size = baseline.get("by_prompt_tokens") or {}
    if not by_size:
        return f"{rate(baseline.get('decode_tok_s', baseline.get('tok_s')))} tok/s"
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
