"""Writes the generated parts of docs/: run it by `make docs`; tests/docs holds the files to what it would write.

A generated part of a hand-written page stands between ``<!-- generated: NAME -->`` and ``<!-- end -->``.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import cast

import typer
from typer.core import TyperGroup

from supervisor.api.openapi import openapi_document
from supervisor.cli.app import app
from supervisor.config.reference import config_reference
from supervisor.core.lane.lane import TABLE
from supervisor.core.states import GATE_BY_STATE, SUCCESSORS, LaneState
from supervisor.presets.pages import preset_sections, preset_table

DOCS = Path(__file__).parent
PART = re.compile(r"(?P<head><!-- generated: (?P<name>\w+) -->\n).*?(?P<end><!-- end -->)", re.DOTALL)


def state_diagram() -> str:
    """The lane's states and steps, drawn from ``SUCCESSORS``."""
    lines = ["```mermaid", "stateDiagram-v2", "    [*] --> stopped"]
    for state, successors in SUCCESSORS.items():
        # A colon or semicolon within a label ends it.
        lines += [f"    {state} --> {successor}: {re.sub('[:;]', ',', why)}" for successor, why in successors.items()]
    return "\n".join([*lines, "```"])


def gate_table() -> str:
    """What each state means for a request that arrives."""
    rows = [f"| `{state}` | {GATE_BY_STATE[state]} |" for state in LaneState]
    return "\n".join(["| state | gate |", "| --- | --- |", *rows])


def event_table() -> str:
    """What each event means in each state, from the lane's table."""
    marks = {"acts": "●", "ignored": "·", "impossible": "✗"}
    head = " | ".join(state.replace("_", " ") for state in LaneState)
    lines = [f"| event | {head} |", "| --- |" + " :-: |" * len(LaneState)]
    for event, row in TABLE.items():
        cells = " | ".join(marks[row.meaning(state)] for state in LaneState)
        lines.append(f"| {event.__name__} | {cells} |")
    return "\n".join([*lines, "", "● acts, · ignored, ✗ impossible: a fault of the program, raised and logged."])


def command_table() -> str:
    """Every verb, with the first line of its help."""
    group = cast("TyperGroup", typer.main.get_command(app))
    context = typer.Context(group)
    lines = ["| command | does |", "| --- | --- |"]
    for name in group.list_commands(context):
        verb = group.get_command(context, name)
        text = (verb.help or "").strip() if verb else ""
        first_line = text.split("\n", maxsplit=1)[0].replace("|", "\\|")
        lines.append(f"| `freshlane {name}` | {first_line} |")
    return "\n".join(lines)


def path_table() -> str:
    """Every path of the API, from its own description."""
    lines = ["| request | does | needs |", "| --- | --- | --- |"]
    for path, item in openapi_document("").get("paths", {}).items():
        for method, operation in item.items():
            if method != "parameters":
                key = _key(path, is_open=operation.get("security") is not None)
                lines.append(f"| `{method.upper()} {path}` | {operation['summary']} | {key} |")
    return "\n".join(lines)


def _key(path: str, *, is_open: bool) -> str:
    if is_open:
        return "nothing"
    return "a client's key" if path.startswith("/v1") else "either key" if path == "/metrics" else "an admin's key"


PARTS: dict[str, Callable[[], str]] = {
    "states": state_diagram,
    "gate": gate_table,
    "events": event_table,
    "commands": command_table,
    "paths": path_table,
    "preset_table": preset_table,
    "preset_sections": preset_sections,
}


def filled(page: str) -> str:
    """``page`` with each generated part made anew. Raises KeyError for a part that nothing makes."""
    return PART.sub(lambda found: f"{found['head']}{PARTS[found['name']]()}\n{found['end']}", page)


def pages() -> dict[Path, str]:
    """Every page of docs/, and what it should hold."""
    written = {path: path.read_text(encoding="utf-8") for path in sorted(DOCS.glob("*.md"))}
    return {**{path: filled(text) for path, text in written.items()}, DOCS / "config.md": config_reference()}


def main() -> int:
    """Write what changed."""
    for path, text in pages().items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            print(f"wrote {path.relative_to(DOCS.parent)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
