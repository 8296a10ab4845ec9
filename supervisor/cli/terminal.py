"""The two ends of a terminal: results on stdout, complaints on stderr. Colours only where a person looks."""

from __future__ import annotations

import json
import os
import sys
from functools import cache
from typing import Any

from rich.console import Console
from rich.text import Text
from rich.theme import Theme

THEME = Theme(
    {
        "good": "green",
        "warn": "yellow",
        "bad": "bold red",
        "busy": "cyan",
        "quiet": "dim",
        "name": "bold",
        "head": "dim",
    }
)
WIDTH_OF_A_PIPE = 160
"""Columns where there is no terminal: wide enough that nothing a script might look for is folded away."""


@cache
def out() -> Console:
    """Stdout. Rich keeps to TERM=dumb and COLUMNS by itself."""
    return _console(is_stderr=False)


@cache
def err() -> Console:
    """Stderr."""
    return _console(is_stderr=True)


def is_plain() -> bool:
    """Whether a person asked for text without any colours, by NO_COLOR. Bold and dim are left out, too."""
    return bool(os.environ.get("NO_COLOR"))


def width() -> int | None:
    """Columns to keep within; None where stdout is no terminal."""
    return out().width if out().is_terminal else None


def say(*lines: str | Text) -> None:
    """Print result lines as they are: no markup, no numbers painted by guess."""
    for line in lines:
        out().print(line, markup=False, highlight=False, soft_wrap=True)


def print_line(line: str) -> None:
    """Print a line as it is, at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def print_bytes(part: bytes) -> None:
    """Pass on what someone else wrote, untouched and at once."""
    sys.stdout.buffer.write(part)
    sys.stdout.buffer.flush()


def warn(text: str) -> None:
    """Print a warning on stderr."""
    err().print(Text(text, style="warn"), soft_wrap=True)


def print_json(document: Any) -> None:
    """Print exactly what the daemon said, indented."""
    sys.stdout.write(json.dumps(document, indent=2, ensure_ascii=False) + "\n")


def print_json_line(document: Any) -> None:
    """Print one document on one line, at once, for whoever follows."""
    print_line(json.dumps(document, ensure_ascii=False))


def _console(*, is_stderr: bool) -> Console:
    stream = sys.stderr if is_stderr else sys.stdout
    is_terminal = stream.isatty()
    return Console(
        stderr=is_stderr,
        theme=THEME,
        highlight=False,
        emoji=False,
        color_system=None if is_plain() else "auto",
        width=None if is_terminal else WIDTH_OF_A_PIPE,
    )
