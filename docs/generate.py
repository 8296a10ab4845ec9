"""Writes the generated parts of docs/: run it by `make docs`; a test holds the files to what it would write.

A generated part of a hand-written page stands between ``<!-- generated: NAME -->`` and ``<!-- end -->``.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from supervisor.config.reference import config_reference
from supervisor.core.lane import TABLE
from supervisor.core.states import GATE_BY_STATE, SUCCESSORS, LaneState

DOCS = Path(__file__).parent


def state_diagram() -> str:
    """The lane's states and steps, drawn from ``SUCCESSORS``."""
    lines = ["```mermaid", "stateDiagram-v2", "    [*] --> stopped"]
    for state, successors in SUCCESSORS.items():
        lines += [f"    {state} --> {successor}: {why}" for successor, why in successors.items()]
    return "\n".join([*lines, "```"])


def gate_table() -> str:
    """What each state means for a request that arrives."""
    rows = [f"| {state} | {GATE_BY_STATE[state]} |" for state in LaneState]
    return "\n".join(["| state | gate |", "| --- | --- |", *rows])


def event_table() -> str:
    """What each event means in each state, from the lane's table."""
    marks = {"acts": "●", "ignored": "·", "impossible": "×"}
    head = " | ".join(state.replace("_", " ") for state in LaneState)
    lines = [f"| event | {head} |", "| --- |" + " :-: |" * len(LaneState)]
    for event, row in TABLE.items():
        cells = " | ".join(marks[row.meaning(state)] for state in LaneState)
        lines.append(f"| {event.__name__} | {cells} |")
    return "\n".join([*lines, "", "● acts · ignored × impossible: a fault of the program, raised and journalled"])


def filled(page: str) -> str:
    """``page`` with each generated part made anew."""
    for name, make in PARTS.items():
        pattern = re.compile(rf"(<!-- generated: {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        text = make()
        page = pattern.sub(lambda found, text=text: f"{found[1]}{text}\n{found[2]}", page)  # type: ignore[misc]
    return page


PARTS = {"states": state_diagram, "gate": gate_table, "events": event_table}


def pages() -> dict[Path, str]:
    """Every file with a generated part, and what it should hold."""
    architecture = DOCS / "architecture.md"
    return {
        architecture: filled(architecture.read_text(encoding="utf-8")),
        DOCS / "config.md": config_reference(),
    }


def main() -> int:
    """Write what changed."""
    for path, text in pages().items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            print(f"wrote {path.relative_to(DOCS.parent)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
