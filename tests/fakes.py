"""How tests start the fake worker, and what it will answer.

The one way to start it is `fake_command(...)`: an argv whose `{port}` the daemon fills in (or `fill_port`).
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.fake_worker.words import count_tokens, tokens

__all__ = ["count_tokens", "expected_text", "fake_command", "fill_port", "read_lines", "set_knobs"]

FOLDER = Path(__file__).resolve().parent / "fake_worker"


def fake_command(**knobs: Any) -> list[str]:
    """The argv of a fake worker, with a `{port}` placeholder; `tok_s=60` becomes `--tok-s 60`.

    True gives the bare flag; False and None leave it out; a list is joined by commas. The names are the fields of
    tests.fake_worker.knobs.Knobs. Works from any folder.
    """
    command = [sys.executable, str(FOLDER), "--port", "{port}"]
    for name, value in knobs.items():
        if value is None or value is False:
            continue
        command.append("--" + name.replace("_", "-"))
        if value is not True:
            command.append(",".join(map(str, value)) if isinstance(value, list | tuple) else str(value))
    return command


def fill_port(command: Sequence[str], port: int) -> list[str]:
    return [part.replace("{port}", str(port)) for part in command]


def set_knobs(control: Path, **knobs: Any) -> None:
    """Changes knobs of every running worker started with `control=control`; replaces what was set before."""
    beside = control.with_name(control.name + ".new")
    beside.write_text(json.dumps(knobs))
    os.replace(beside, control)  # noqa: PTH105


def expected_text(prompt: str, n_tokens: int, start: int = 0) -> str:
    """The whole answer to `prompt` (a completion's prompt, or the content of a chat's last message)."""
    return "".join(tokens(prompt, start, n_tokens))


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The JSON lines of a digest or requests file so far; none while there is no file."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
