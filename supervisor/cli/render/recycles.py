"""A recycle as a short story: a line with when, which lane and how it ended, and under it why and what it brought."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.text import Text

from supervisor.cli.render.layout import hang
from supervisor.cli.words import ago, clock
from supervisor.core.account.story import sentences

STYLE_OF_OUTCOME = {"cured": "good", "replaced": "good", "partial": "warn", "futile": "warn", "aborted": "warn"}
INDENT = 4


def story(record: Mapping[str, Any], width: int | None, console: Console) -> list[Text]:
    """The lines of a record: its head, and its sentences within the terminal's width."""
    text = Text(" ".join(sentences(record)))
    if record.get("next"):
        text.append(f" → {record['next']}", style="quiet")
    return [
        *hang(_head(record), width, console, rest=INDENT),
        *hang(text, width, console, first=INDENT, rest=INDENT),
    ]


def _head(record: Mapping[str, Any]) -> Text:
    outcome = str(record.get("outcome") or "under way")
    text = Text(clock(record.get("time")))
    text.append(f" ({ago(record.get('time'))})  ", style="quiet")
    text.append(str(record.get("lane", "?")), style="name").append("  ")
    text.append(str(record.get("trigger", "?")), style="busy").append(", ")
    return text.append(outcome.replace("_", " "), style=STYLE_OF_OUTCOME.get(outcome, "bad"))
