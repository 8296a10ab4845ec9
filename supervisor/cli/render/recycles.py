"""A recycle as a short story: a line for what happened and why, a line for what it brought."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.text import Text

from supervisor.cli.render.layout import hang, painted
from supervisor.cli.words import NOTHING, ago, clock, length, plural, rate, share

STYLE_OF_OUTCOME = {"cured": "good", "replaced": "good", "partial": "warn", "futile": "warn", "aborted": "warn"}
INDENT = 4


def story(record: Mapping[str, Any], width: int | None, console: Console) -> list[Text]:
    """The two lines of a record; more where the terminal is narrow."""
    beginning = hang(_beginning(record), width, console, rest=INDENT)
    return [*beginning, *hang(_end(record), width, console, first=INDENT, rest=INDENT)]


def _beginning(record: Mapping[str, Any]) -> Text:
    text = Text(clock(record.get("time")))
    text.append(f" ({ago(record.get('time'))})  ", style="quiet")
    text.append(str(record.get("lane", "?")), style="name").append("  ")
    text.append(str(record.get("trigger", "?")), style="busy")
    return text.append(f"  {why(record)}")


def why(record: Mapping[str, Any]) -> str:
    """The cause with its evidence, and what the person or the judge said."""
    cause = record.get("cause") or {}
    kind = str(cause.get("kind") or "")
    said = dict.fromkeys(str(part) for part in (*(cause.get("evidence") or ()), record.get("reason")) if part)
    named = kind.replace("_", " ") if kind not in ("none", "unknown") else ""
    return ": ".join(part for part in (named, "; ".join(said)) if part) or "no cause known"


def _end(record: Mapping[str, Any]) -> Text:
    outcome = str(record.get("outcome") or "under way")
    text = painted(outcome.replace("_", " "), STYLE_OF_OUTCOME.get(outcome, "bad"))
    facts = [speeds(record), _downtime(record), _requests(record)]
    text.append("  " + "  ".join(fact for fact in facts if fact))
    if record.get("next"):
        text.append(f"  → {record['next']}", style="quiet")
    return text


def speeds(record: Mapping[str, Any]) -> str:
    """``8.42 → 27.1 tok/s (31 % → 99 % of fresh)``; empty where nothing was measured."""
    before, after = record.get("before") or {}, record.get("after") or {}
    rates = [rate(side.get("decode_tok_s")) for side in (before, after)]
    if rates == [NOTHING, NOTHING]:
        return ""
    ratios = [share(side.get("ratio")) for side in (before, after)]
    of_fresh = "" if ratios == [NOTHING, NOTHING] else f" ({' → '.join(ratios)} of fresh)"
    return f"{' → '.join(rates)} tok/s{of_fresh}"


def _downtime(record: Mapping[str, Any]) -> str:
    seconds = record.get("downtime_s")
    if seconds is None:
        return ""
    return "no downtime" if seconds == 0 else f"down {length(seconds)}"


def _requests(record: Mapping[str, Any]) -> str:
    requests = record.get("requests") or {}
    held, failed = int(requests.get("held") or 0), int(requests.get("failed") or 0)
    replayed, cut = int(requests.get("replayed") or 0), int((record.get("drain") or {}).get("cut") or 0)
    parts = [f"{plural(held, 'request')} held", f"{failed} failed"]
    parts += [f"{replayed} replayed"] if replayed else []
    parts += [f"{cut} cut"] if cut else []
    return ", ".join(parts)
