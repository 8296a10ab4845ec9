"""Records `freshlane demo` as docs/demo.svg: what a terminal of 80 columns shows, colours and all, without the foot."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.text import Text

COLUMNS, ROWS = 80, 60
TERMINAL = {"TERM": "xterm-256color", "TTY_INTERACTIVE": "0"}
WITHIN_S = 600.0
READ_BYTES = 65536


def main() -> int:
    """Run it, show it, and keep it if it went well."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (ROWS, COLUMNS))
    environment = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS")} | TERMINAL
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "supervisor", "demo"], stdout=theirs, env=environment
    ) as process:
        os.close(theirs)
        said = b"".join(_shown(ours))
        code = process.wait(WITHIN_S)
    if code == 0:
        _keep(said.decode().replace("\r\n", "\n"))
    return code


def _shown(terminal: int) -> Iterator[bytes]:
    while True:
        try:
            piece = os.read(terminal, READ_BYTES)
        except OSError:  # what Linux says when nobody holds the other end
            return
        if not piece:
            return
        os.write(sys.stdout.fileno(), piece)
        yield piece


def _keep(said: str) -> None:
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(Text("$ freshlane demo", style="bold"))
    console.print(Text.from_ansi(said))
    Path(__file__).with_name("demo.svg").write_text(console.export_svg(title="freshlane demo"), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
